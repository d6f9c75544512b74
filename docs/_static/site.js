// The versions of the site lie beside each other, wherever that is: versions.json has addresses
// relative to a version's folder. The switcher would take them for relative to the page.
new MutationObserver(() => {
  const version = new URL(document.documentElement.dataset.content_root, location.href);
  for (const link of document.querySelectorAll(".version-switcher__menu a[href^='../']"))
    link.href = new URL(link.getAttribute("href"), version).href;
}).observe(document.documentElement, { childList: true, subtree: true });

// Long names in tables and titles break behind a dot, an underscore or a parenthesis.
document.addEventListener("DOMContentLoaded", () => {
  for (const name of document.querySelectorAll("article td code .pre, article h1"))
    for (const text of [...name.childNodes].filter(node => node.nodeType === Node.TEXT_NODE))
      text.replaceWith(...text.data.split(/(?<=[._=]|\((?!\)))/).flatMap(
        (part, i) => (i ? [document.createElement("wbr"), part] : [part])));
});

// The versions of the site lie beside each other, wherever that is: versions.json has addresses
// relative to a version's folder. The switcher would take them for relative to the page.
new MutationObserver(() => {
  const version = new URL(document.documentElement.dataset.content_root, location.href);
  for (const link of document.querySelectorAll(".version-switcher__menu a[href^='../']"))
    link.href = new URL(link.getAttribute("href"), version).href;
}).observe(document.documentElement, { childList: true, subtree: true });

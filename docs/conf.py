"""Sphinx's configuration. `ci/docs` builds the site: it copies docs/ and adds the API pages."""

import os

REPOSITORY = os.environ["GPUGRAD_DOCS_REPOSITORY"]  # these are set by ci/docs
VERSION = os.environ["GPUGRAD_DOCS_VERSION"]

project = "gpugrad"
author = "The gpugrad developers"
copyright = "the gpugrad developers, Apache-2.0"
version = release = VERSION

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
exclude_patterns = ["README.md"]  # its sections are pages of their own
root_doc = "index"
highlight_language = "python"
add_module_names = False
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

html_title = "gpugrad"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "api/names/*": [], "search": []}
html_theme_options = {
    "logo": {"text": "gpugrad"},
    "icon_links": [{"name": "Source", "url": REPOSITORY, "icon": "fa-brands fa-github"}],
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "switcher": {"json_url": os.environ["GPUGRAD_DOCS_VERSIONS"], "version_match": VERSION},
    "show_version_warning_banner": True,
    "check_switcher": False,  # the file is written when the pages are
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

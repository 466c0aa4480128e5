/** The icon of the tab with a dot on it. Pure. */

const DOT = '<circle cx="25" cy="7" r="6.500" fill="#d9480f" stroke="#fff" stroke-width="1.500"/>';
const HEAD = "data:image/svg+xml;base64,";

/** Add the dot to an icon that is a data address of an SVG; any other address stays as it is. */
export function dotted(icon: string): string {
  if (!icon.startsWith(HEAD)) return icon;
  return HEAD + btoa(atob(icon.slice(HEAD.length)).replace("</svg>", `${DOT}</svg>`));
}

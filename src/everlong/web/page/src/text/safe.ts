/** The last step before any HTML is shown: it removes everything that is not allowed, whatever the parser made. */
import DOMPurify from "dompurify";

export const LINK = /^(?:https?:|mailto:)/i;
const TAGS =
  "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr li ol p pre span strong sup table tbody td th thead tr ul".split(" ");

/** HTML without script, pictures, forms and handlers; links only to the web and to mail. */
export function safe(html: string): string {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "title", "target", "rel", "class", "start", "align"],
    ALLOWED_URI_REGEXP: LINK,
    // Otherwise DOMPurify checks these as addresses and drops them.
    ADD_URI_SAFE_ATTR: ["target", "rel", "start", "align"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

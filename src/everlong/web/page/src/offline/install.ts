/** Lets the page be installed and opened without its server: the service worker is public/sw.js. */

const LATER = 1_500; // milliseconds after the start: visible things come first

export function install(): void {
  // Service workers exist only on https and on this machine. In development, files change too often for them.
  if (!("serviceWorker" in navigator) || import.meta.env.DEV) return;
  setTimeout(() => {
    navigator.serviceWorker.register("/sw.js").catch(() => {
      // The page works without it.
    });
  }, LATER);
}

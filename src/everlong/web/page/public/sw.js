/**
 * The service worker: the page opens without its server, and says so itself.
 *
 * It answers for the page and its built files alone; the API and the gateway are never touched or kept. The page comes
 * from the server whenever that answers, so a new build takes over at the next load. What is kept is one cache for each
 * build, named by the page itself: a page and its files always belong together. The build before stays too, for tabs
 * that were opened with it and load a part of it later.
 */

const CACHE = "everlong-page-";
const BUILDS = 2; // kept at once
const OURS = "<title>Everlong</title>";

self.addEventListener("install", (event) => {
  event.waitUntil(fetchPage().then(keep).then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate" && (url.pathname === "/" || url.pathname === "/index.html")) {
    event.respondWith(page(event));
  } else if (url.pathname.startsWith("/assets/")) {
    event.respondWith(asset(request));
  }
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(
    self.clients.matchAll({ type: "window" }).then(([tab]) => (tab ? tab.focus() : self.clients.openWindow("/"))),
  );
});

const fetchPage = () => fetch("/", { cache: "no-cache" });

async function page(event) {
  try {
    const fresh = await fetchPage();
    if (!fresh.ok) return (await keptPage()) ?? fresh;
    event.waitUntil(keep(fresh.clone()).catch(() => {})); // without room it is not kept, and works all the same
    return fresh;
  } catch {
    return (await keptPage()) ?? Response.error();
  }
}

/** Keep a build: first what the page needs to begin with, then the page. A cache without its page is not whole. */
async function keep(response) {
  const html = await response.clone().text();
  if (!html.includes(OURS)) return leave();
  const name = CACHE + (await digest(html));
  const cache = await caches.open(name);
  if (await cache.match("/")) return;
  const scripts = [...html.matchAll(/<script [^>]*src="(\/assets\/[^"]+)"/g)].map((found) => found[1]);
  await cache.addAll(scripts);
  await cache.put("/", response);
  const builds = await ownCaches();
  await Promise.all(builds.slice(0, -BUILDS).map((old) => caches.delete(old)));
}

async function keptPage() {
  for (const name of (await ownCaches()).reverse()) {
    const found = await (await caches.open(name)).match("/");
    if (found) return found;
  }
  return undefined;
}

/** A built file: its name has a hash of its content, so what is kept is right for ever. */
async function asset(request) {
  const kept = await caches.match(request.url);
  if (kept) return kept;
  const fresh = await fetch(request);
  const newest = (await ownCaches()).at(-1);
  if (fresh.ok && newest) await (await caches.open(newest)).put(request.url, fresh.clone()).catch(() => {});
  return fresh;
}

/** Our caches, the oldest first. */
async function ownCaches() {
  return (await caches.keys()).filter((name) => name.startsWith(CACHE));
}

/** Something else is served at this address now: this worker has no business here any more. */
async function leave() {
  await Promise.all((await ownCaches()).map((name) => caches.delete(name)));
  await self.registration.unregister();
}

async function digest(text) {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("").slice(0, 16);
}

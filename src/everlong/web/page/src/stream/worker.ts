/**
 * The shared worker: it holds the stream of all tabs.
 *
 * A tab that is closed says so. One that crashed or was frozen cannot; it no longer answers questions, and is left out
 * until it sends something again.
 */
import { Streams, type Member } from "./streams";
import type { Order } from "./tab";

const ASKED_EVERY = 30_000; // milliseconds
const SILENT = 3; // questions without an answer

const streams = new Streams((path) => new EventSource(path));
const unanswered = new Map<Member, { port: MessagePort; count: number }>();

function follow(port: MessagePort): void {
  const member: Member = { tell: (heard) => port.postMessage(heard) };
  const gone = () => {
    unanswered.delete(member);
    streams.leave(member);
  };
  port.addEventListener("close", gone);
  port.onmessage = ({ data: order }: MessageEvent<Order>) => {
    if (order.kind === "leave") return gone();
    unanswered.set(member, { port, count: 0 });
    if (order.kind === "want") streams.want(member, order.wants);
    else if (order.kind === "nudge") streams.nudge();
  };
}

setInterval(() => {
  for (const [member, tab] of unanswered) {
    tab.count += 1;
    if (tab.count <= SILENT) {
      tab.port.postMessage("here?");
      continue;
    }
    unanswered.delete(member);
    streams.leave(member);
  }
}, ASKED_EVERY);

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => follow(event.ports[0]);

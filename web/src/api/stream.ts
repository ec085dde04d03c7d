// Server-sent events: batches, resumed by the browser with Last-Event-ID; a gap is told, and the reader fills it from the ledger.
import type { LogEvent } from "./client";

export type Connection = "connecting" | "live" | "lost" | "locked"; // locked: it answers, and does not know this page any more

export interface StreamHandlers {
  events(batch: LogEvent[]): void;
  /** Events were missed: read from the ledger what is needed. */
  gap(): void;
  connection(state: Connection): void;
}

const AGAIN_MS = 1500;
const DRAWN_MS = 33; // what comes within two frames is drawn at once

/** Opens the stream; the function returned closes it. A page that comes back to the front reads on at once. */
export function openStream(handlers: StreamHandlers): () => void {
  let source: EventSource | null = null;
  let timer = 0;
  let started = false;
  let waiting: LogEvent[] = [];
  let due = 0;
  const deliver = () => {
    due = 0;
    const batch = waiting;
    waiting = [];
    handlers.events(batch);
  };

  const open = () => {
    source?.close();
    source = new EventSource("/api/events");
    source.addEventListener("hello", () => {
      // After a reconnection that EventSource could not resume itself, everything since is a gap.
      if (started) handlers.gap();
      started = true;
      handlers.connection("live");
    });
    source.addEventListener("gap", () => {
      handlers.connection("live");
      handlers.gap();
    });
    source.onopen = () => handlers.connection("live");
    source.onmessage = (message: MessageEvent<string>) => {
      waiting.push(...(JSON.parse(message.data) as LogEvent[]));
      due ||= window.setTimeout(deliver, DRAWN_MS);
    };
    source.onerror = () => {
      handlers.connection("lost");
      if (source?.readyState !== EventSource.CLOSED) return;
      clearTimeout(timer);
      timer = window.setTimeout(open, AGAIN_MS);
      // A studio that was started anew has another token: that is no matter of waiting.
      fetch("/api/studio").then((found) => { if (found.status === 401) handlers.connection("locked"); }, () => undefined);
    };
  };

  handlers.connection("connecting");
  open();
  return () => {
    clearTimeout(timer);
    clearTimeout(due);
    source?.close();
  };
}

import { clearInterval, setInterval } from "node:timers";
import type { Http2Session, SecureServerOptions } from "node:http2";

/** Settings of HTTP/2, as of kube-apiserver where it has one. */
export const HTTP2_OPTIONS: SecureServerOptions = {
  allowHTTP1: true,
  settings: {
    maxConcurrentStreams: 100,
    // The limit that Node has for HTTP/1.1.
    maxHeaderListSize: 16 << 10,
  },
  // Each watch may lag by 16 MiB; beyond the limit, Node refuses new streams.
  maxSessionMemory: 2_000,
};

/** Highest number of a stream: all that began before a GOAWAY arrives are served. */
const LAST_STREAM = 2 ** 31 - 1;

/** Interval of pings, in milliseconds: a session that answers none is closed. */
const PING_INTERVAL_MS = 15_000;

/** HTTP/2 connections of a server. */
export class Http2Sessions {
  readonly #open = new Set<Http2Session>();
  readonly #pingInterval: number;

  /**
   * Creates an empty set.
   *
   * @param pingInterval Interval of pings, in milliseconds.
   */
  constructor(pingInterval: number = PING_INTERVAL_MS) {
    this.#pingInterval = pingInterval;
  }

  /**
   * Takes note of a new session. Its connection is closed when the client has
   * gone: without pings, Node does not notice a connection that was reset while
   * it waited for the end of a write, and would keep its watches forever.
   *
   * @param closeConnection Function that closes the connection.
   */
  add(session: Http2Session, closeConnection: () => void): void {
    this.#open.add(session);
    let isAnswered = true;
    const timer = setInterval(() => {
      // One that was destroyed takes no ping, and may never close by itself.
      if (!isAnswered || session.destroyed) {
        session.destroy();
        // Node would wait for the end of the write.
        closeConnection();
        return;
      }
      isAnswered = false;
      session.ping(() => isAnswered = true);
    }, this.#pingInterval);
    timer.unref();
    session.once("close", () => {
      clearInterval(timer);
      this.#open.delete(session);
    });
  }

  /**
   * Tells a client to use another connection for further requests. The streams
   * that run go on, and the connection closes with the last one.
   */
  retire(session: Http2Session | undefined): void {
    if (session === undefined || session.closed || session.destroyed) return;
    session.goaway(0, LAST_STREAM);
    // The client has read the notice once it answers; none of its requests is lost.
    session.ping(() => session.destroyed || session.close());
  }

  /** Does so for each session. */
  retireAll(): void {
    for (const session of this.#open) this.retire(session);
  }

  /** Ends all sessions at once, each with a GOAWAY. */
  endAll(): void {
    for (const session of this.#open) session.destroy();
  }
}

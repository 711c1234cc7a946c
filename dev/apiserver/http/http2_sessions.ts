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

/** HTTP/2 connections of a server. */
export class Http2Sessions {
  readonly #open = new Set<Http2Session>();

  /** Takes note of a new session. */
  add(session: Http2Session): void {
    this.#open.add(session);
    session.once("close", () => this.#open.delete(session));
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

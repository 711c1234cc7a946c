import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "@coracle/operator/client";
import { readTarget } from "../apiserver/request/request_info.ts";

/**
 * Time without requests after which a server counts as quiet, in milliseconds
 * of real time: longer than a write takes to reach the watches.
 */
const QUIET_AFTER_MS = 50;
/** Time limit for the server to become quiet, in milliseconds of real time. */
const QUIET_TIMEOUT_MS = 30_000;

/**
 * Transport to a server in another process that detects when the server is
 * quiet: every request is answered, and the watches have delivered the changes.
 * A virtual clock waits for that before it advances.
 *
 * A watch of a single CustomResourceDefinition counts as a request: the client
 * that installs a kind waits for conditions that controllers of the server write,
 * in real time.
 */
export class QuietTransport implements Transport {
  readonly #inner: Transport;
  /**
   * Number of requests without a complete answer; endless watches count until
   * their headers arrive.
   */
  #open = 0;
  /** Time of the last byte sent or received; undefined when quiet. */
  #last: number | undefined;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    this.#open++;
    this.#last = performance.now();
    try {
      const response = await this.#inner.send(request);
      const endless = isEndless(request.path);
      if (endless) this.#end();
      return this.#followed(response, endless);
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async connect(request: StreamRequest): Promise<StreamConnection> {
    if (this.#inner.connect === undefined) {
      throw new Error("Cannot open a stream: the transport has none");
    }
    return await this.#inner.connect(request);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /**
   * Resolves when the server is quiet: immediately if nothing was sent or
   * received since the last call.
   *
   * @throws {Error} If it does not become quiet within 30 seconds.
   */
  async quiet(): Promise<void> {
    const end = performance.now() + QUIET_TIMEOUT_MS;
    while (this.#last !== undefined) {
      const silent = performance.now() - this.#last;
      if (this.#open === 0 && silent >= QUIET_AFTER_MS) this.#last = undefined;
      else if (performance.now() > end) {
        throw new Error(
          `Cannot wait for the server to become quiet: ${this.#open} requests are in progress, and the last byte was received ${
            Math.round(silent)
          } ms ago`,
        );
      } else await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  #end(): void {
    this.#open--;
    this.#last = performance.now();
  }

  #followed(response: HttpResponse, endless: boolean): HttpResponse {
    let ended = endless;
    const end = () => {
      if (!ended) this.#end();
      ended = true;
    };
    const heard = () => void (this.#last = performance.now());
    return {
      ...response,
      body: (async function* () {
        try {
          for await (const chunk of response.body) {
            heard();
            yield chunk;
          }
        } finally {
          end();
        }
      })(),
      cancel: () => {
        end();
        return response.cancel();
      },
    };
  }
}

/** Whether a request is a watch that may last as long as the operator. */
function isEndless(path: string): boolean {
  const { query, resource } = readTarget(path) ?? {};
  const watch = query?.get("watch");
  if (watch !== "true" && watch !== "1") return false;
  // An informer of one definition, such as that of a condition, has bookmarks.
  return resource?.plural !== "customresourcedefinitions" ||
    !query?.get("fieldSelector")?.startsWith("metadata.name=") ||
    query.has("allowWatchBookmarks");
}

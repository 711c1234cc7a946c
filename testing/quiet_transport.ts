import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "../core/client/transport/transport.ts";
import { readTarget } from "../apiserver/request/request_info.ts";

/**
 * How long a server must have said nothing to count as quiet, in milliseconds
 * of real time: longer than it takes to tell watches of a write.
 */
const SILENCE = 50;
/** How long a server may go on talking, in milliseconds of real time. */
const PATIENCE = 10_000;

/**
 * Passes requests on to a server in another process, and knows when nothing is
 * under way there: every request is answered, and its watches have told what
 * came of it. A virtual clock waits for that before it leaps.
 */
export class QuietTransport implements Transport {
  readonly #inner: Transport;
  /** Requests whose answer is not read to its end; of watches, to its head. */
  #open = 0;
  /** When something was last sent or received; undefined once it was quiet. */
  #last: number | undefined;

  /** @param inner Sends what this one is given. */
  constructor(inner: Transport) {
    this.#inner = inner;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    this.#begin();
    try {
      const response = await this.#inner.send(request);
      const watch = readTarget(request.path)?.query.get("watch");
      const endless = watch === "true" || watch === "1";
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
   * Fulfilled when nothing is under way: at once if nothing was sent or received
   * since the last time.
   *
   * @throws {Error} If it does not become quiet within ten seconds.
   */
  async quiet(): Promise<void> {
    const end = performance.now() + PATIENCE;
    while (this.#last !== undefined) {
      const silent = performance.now() - this.#last;
      if (this.#open === 0 && silent >= SILENCE) this.#last = undefined;
      else if (performance.now() > end) {
        throw new Error(
          `Cannot wait for the server to become quiet: ${this.#open} requests are under way: received bytes ${
            Math.round(silent)
          } ms ago`,
        );
      } else await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  #begin(): void {
    this.#open++;
    this.#last = performance.now();
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

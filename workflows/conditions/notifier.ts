import { type Duration, milliseconds } from "../../core/api/duration.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import { timestamp } from "../../core/api/timestamp.ts";
import { type Clock, deadline, sleep, systemClock } from "../../core/clock.ts";
import { type Logger, silentLogger } from "../../core/logger.ts";

/** What a notifier is told. */
export interface Notification {
  /** Whether it is good news, bad news, or a detail. */
  readonly severity: "info" | "error" | "trace";
  /** Why, as one word for programs. */
  readonly reason: string;
  /** Why, as a sentence for people. */
  readonly message: string;
}

/** Tells something outside of the cluster what happens to objects. */
export interface Notifier {
  /** Tells of an object; returns at once and never throws. */
  notify(object: KubernetesObject, notice: Notification): void;
}

/** Options of a {@linkcode WebhookNotifier}. */
export interface WebhookNotifierOptions {
  /** Where notices are posted to. */
  readonly url: string | URL;
  /** Who reports: the name of the controller. */
  readonly controller: string;
  /**
   * Which of its replicas reports.
   *
   * @default {the controller}
   */
  readonly instance?: string | undefined;
  /**
   * Sent along, such as an `authorization`.
   *
   * @default {{}}
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * What the annotations begin with that are told besides, without it.
   *
   * @default {"event.coracle.dev/"}
   */
  readonly annotationPrefix?: string | undefined;
  /**
   * How long one attempt may take.
   *
   * @default {"5s"}
   */
  readonly timeout?: Duration | undefined;
  /**
   * How many attempts there are at most.
   *
   * @default {4}
   */
  readonly attempts?: number | undefined;
  /**
   * Sends the requests.
   *
   * @default {globalThis.fetch}
   */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /**
   * Measures timeouts and pauses.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Where it writes what could not be delivered.
   *
   * @default {nowhere}
   */
  readonly log?: Logger | undefined;
}

const RULES: OptionRules<WebhookNotifierOptions> = {
  url: "any",
  controller: "name",
  instance: "name?",
  headers: "object?",
  annotationPrefix: "string?",
  timeout: "duration?",
  attempts: "count?",
  fetch: "function?",
  clock: "clock?",
  log: "logger?",
};

/** How many notices may wait; later ones are dropped. */
const MOST_WAITING = 256;
/** The longest message that is sent, in UTF-16 code units. */
const LONGEST_MESSAGE = 39_000;
/** The pause before the second attempt in milliseconds; it doubles. */
const FIRST_PAUSE = 500;

/**
 * Posts notices as JSON to an address, one after another: what they are about,
 * severity, reason, message and the annotations that are meant for it. The form
 * is that of Flux' notification controller.
 *
 * A notice never fails a pass, nor does it wait: those that come while one is
 * under way are kept, up to 256. An attempt is repeated after a broken
 * connection, a timeout or an answer of 500 and above; 429 means that the
 * receiver knows already, and ends it.
 *
 * @example Tell a chat room
 * ```ts
 * import { WebhookNotifier } from "@coracle/operator/workflows";
 *
 * const bodies: string[] = [];
 * const notifier = new WebhookNotifier({
 *   url: "https://notify.example.com/",
 *   controller: "mirror",
 *   fetch: (_url, init) => {
 *     bodies.push(String(init?.body));
 *     return Promise.resolve(new Response());
 *   },
 * });
 * const object = { kind: "Mirror", metadata: { name: "web" } };
 * const notice = { severity: "info", reason: "Done", message: "" } as const;
 * notifier.notify(object, notice);
 * await notifier.flush();
 * if (bodies.length !== 1) throw new Error("Unexpected silence");
 * ```
 */
export class WebhookNotifier implements Notifier {
  readonly #options: WebhookNotifierOptions;
  readonly #timeout: number;
  readonly #attempts: number;
  readonly #waiting: string[] = [];
  readonly #stopped: AbortController = new AbortController();
  #posting: Promise<void> | undefined;

  /**
   * Makes a notifier; nothing is sent before the first notice.
   *
   * @param options Where to, and how.
   * @throws {TypeError} If an option is unknown, missing or of another type, or
   * the address is no URL of http or https.
   * @throws {RangeError} If an option is out of range.
   */
  constructor(options: WebhookNotifierOptions) {
    checkOptions(options, RULES, "a WebhookNotifier");
    const { timeout = "5s", attempts = 4, url } = options;
    const protocol = URL.canParse(url) ? new URL(url).protocol : "no URL";
    if (protocol !== "https:" && protocol !== "http:") {
      // The address itself may hold a secret.
      throw new TypeError(
        `Cannot notify: "url" must be a URL of http: or https:: received ${protocol}`,
      );
    }
    this.#options = options;
    this.#timeout = milliseconds(timeout, "timeout");
    this.#attempts = attempts;
  }

  /** Tells of an object; returns at once and never throws. */
  notify(object: KubernetesObject, notice: Notification): void {
    const { log = silentLogger } = this.#options;
    const { reason } = notice;
    if (this.#stopped.signal.aborted) return;
    if (this.#waiting.length >= MOST_WAITING) {
      log.warn("Notice dropped: too many wait", { reason });
      return;
    }
    this.#waiting.push(this.#body(object, notice));
    this.#posting ??= this.#drain();
  }

  /** Fulfilled when everything so far was delivered or given up. */
  async flush(): Promise<void> {
    await this.#posting;
  }

  /** Ends what is under way and drops what waits. */
  async stop(): Promise<void> {
    this.#stopped.abort(
      new Error("Cannot notify any more: received a call of stop"),
    );
    this.#waiting.length = 0;
    await this.#posting;
  }

  #body(object: KubernetesObject, notice: Notification): string {
    const {
      controller,
      instance = controller,
      annotationPrefix = "event.coracle.dev/",
      clock = systemClock,
    } = this.#options;
    const { apiVersion, kind, metadata } = object;
    const { name, namespace, uid, resourceVersion, annotations = {} } =
      metadata;
    const meant = Object.entries(annotations)
      .filter(([key]) => key.startsWith(annotationPrefix))
      .map(([key, value]) => [key.slice(annotationPrefix.length), value]);
    return JSON.stringify({
      involvedObject: {
        apiVersion,
        kind,
        name,
        namespace,
        uid,
        resourceVersion,
      },
      ...notice,
      message: notice.message.slice(0, LONGEST_MESSAGE),
      timestamp: timestamp(clock.wallTime()),
      metadata: Object.fromEntries(meant),
      reportingController: controller,
      reportingInstance: instance,
    });
  }

  async #drain(): Promise<void> {
    const { log = silentLogger } = this.#options;
    for (let body; (body = this.#waiting.shift()) !== undefined;) {
      try {
        await this.#deliver(body);
      } catch (error) {
        log.warn("Cannot deliver a notice", { error });
      }
    }
    this.#posting = undefined;
  }

  async #deliver(body: string): Promise<void> {
    const { clock = systemClock } = this.#options;
    const { signal } = this.#stopped;
    for (let attempt = 1;; attempt++) {
      const last = attempt === this.#attempts;
      try {
        const status = await this.#post(body);
        // To 429 the receiver has had the same before: nothing is wrong.
        if (status < 400 || status === 429) return;
        if (status < 500 || last) return this.#refused(status);
      } catch (error) {
        if (signal.aborted || last) throw error;
      }
      await sleep(FIRST_PAUSE * 2 ** (attempt - 1), { clock, signal });
    }
  }

  #refused(status: number): void {
    const { log = silentLogger } = this.#options;
    log.warn("The receiver refuses a notice", { status });
  }

  async #post(body: string): Promise<number> {
    const { url, headers, clock = systemClock } = this.#options;
    const { fetch = globalThis.fetch } = this.#options;
    return await deadline(
      async (signal) => {
        const response = await fetch(url, {
          method: "POST",
          headers: { "content-type": "application/json", ...headers },
          body,
          signal,
          redirect: "error",
        });
        await response.body?.cancel();
        return response.status;
      },
      this.#timeout,
      {
        clock,
        signal: this.#stopped.signal,
        onTimeout: () =>
          new Error(
            `Cannot deliver a notice: the receiver did not answer within ${this.#timeout} ms`,
          ),
      },
    );
  }
}

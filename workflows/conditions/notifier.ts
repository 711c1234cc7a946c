import { type Duration, milliseconds } from "../../core/api/duration.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import { timestamp } from "../../core/api/timestamp.ts";
import { type Clock, deadline, sleep, systemClock } from "../../core/clock.ts";
import { shortText, textWithCause } from "../../core/error_text.ts";
import { pauseAfter } from "../../core/pace.ts";
import {
  type Logger,
  silentLogger,
  unfailingLogger,
} from "../../core/logger.ts";

/** Receiver of notifications, usually outside the cluster. */
export interface Notifier {
  /** Sends a notification about an object; does not block or throw. */
  notify(object: KubernetesObject, notification: {
    /** Severity, as in Flux' notification API. */
    readonly severity: "info" | "error" | "trace";
    /** Machine-readable reason. */
    readonly reason: string;
    /** Human-readable message. */
    readonly message: string;
  }): void;
}

export type Notification = Parameters<Notifier["notify"]>[1];

/** Options of a {@linkcode WebhookNotifier}. */
export interface WebhookNotifierOptions {
  /** URL to which notifications are posted. */
  readonly url: string | URL;
  /** Name of the reporting controller. */
  readonly controller: string;
  /** Name of the reporting replica. Defaults to the controller. */
  readonly instance?: string | undefined;
  /**
   * Additional request headers, such as `authorization`.
   *
   * @default {{}}
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Prefix of the annotations to include; it is removed from their names.
   *
   * @default {"event.coracle.dev/"}
   */
  readonly annotationPrefix?: string | undefined;
  /**
   * Time limit of an attempt.
   *
   * @default {"5s"}
   */
  readonly timeout?: Duration | undefined;
  /**
   * Maximum number of attempts.
   *
   * @default {4}
   */
  readonly attempts?: number | undefined;
  /**
   * Function that sends the requests.
   *
   * @default {globalThis.fetch}
   */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /**
   * Clock for time limits and pauses.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Logger for notifications that could not be delivered. By default they are
   * not logged.
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

const MAX_QUEUED = 256;
/** Maximum length of a message in UTF-16 code units. */
const MAX_MESSAGE_LENGTH = 39_000;
/** Pauses between the attempts. */
const PAUSE = { initial: 500, max: 60_000 } as const;

/**
 * Notifier that posts JSON to a URL: the object, severity, reason, message and
 * the selected annotations, in the format of Flux' notification controller.
 *
 * Notifications are sent one after the other, and do not fail or delay a run;
 * up to 256 are queued. An attempt is retried after a broken connection, a
 * timeout or a status of 500 and above. A status of 429 means that the receiver
 * already has the notification, and is not retried.
 *
 * @example Notify a chat room
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
 * if (bodies.length !== 1) throw new Error("Unexpected requests");
 * ```
 */
export class WebhookNotifier implements Notifier {
  readonly #options: WebhookNotifierOptions;
  readonly #log: Logger;
  readonly #timeout: number;
  readonly #attempts: number;
  readonly #waiting: string[] = [];
  readonly #stopped: AbortController = new AbortController();
  #posting: Promise<void> | undefined;

  /**
   * Creates a notifier. It sends no request before the first notification.
   *
   * @param options The URL, and how requests are sent.
   * @throws {TypeError} If an option is unknown, missing or of another type, or
   * the URL is no HTTP URL.
   * @throws {RangeError} If an option is out of range.
   */
  constructor(options: WebhookNotifierOptions) {
    checkOptions(options, RULES, "a WebhookNotifier");
    const { timeout = "5s", attempts = 4, url } = options;
    const protocol = URL.canParse(url) ? new URL(url).protocol : "no URL";
    if (protocol !== "https:" && protocol !== "http:") {
      // The URL itself may hold a secret.
      throw new TypeError(
        `Cannot notify: "url" must be a URL of http: or https:: received ${protocol}`,
      );
    }
    this.#options = options;
    this.#log = unfailingLogger(options.log ?? silentLogger);
    this.#timeout = milliseconds(timeout, "timeout");
    this.#attempts = attempts;
  }

  /** Sends a notification about an object; does not block or throw. */
  notify(
    object: KubernetesObject,
    notification: Parameters<Notifier["notify"]>[1],
  ): void {
    const { reason } = notification;
    if (this.#stopped.signal.aborted) return;
    if (this.#waiting.length >= MAX_QUEUED) {
      this.#log.warn("Notification dropped: the queue is full", { reason });
      return;
    }
    this.#waiting.push(this.#body(object, notification));
    this.#posting ??= this.#drain();
  }

  /** Resolves when all notifications so far were delivered or dropped. */
  async flush(): Promise<void> {
    await this.#posting;
  }

  /** Aborts the current request and drops queued notifications. */
  async stop(): Promise<void> {
    this.#stopped.abort(
      new Error("Cannot deliver a notification: the notifier was stopped"),
    );
    this.#waiting.length = 0;
    await this.#posting;
  }

  #body(object: KubernetesObject, notification: Notification): string {
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
      ...notification,
      message: shortText(notification.message, MAX_MESSAGE_LENGTH),
      timestamp: timestamp(clock.wallTime()),
      metadata: Object.fromEntries(meant),
      reportingController: controller,
      reportingInstance: instance,
    });
  }

  async #drain(): Promise<void> {
    for (let body; (body = this.#waiting.shift()) !== undefined;) {
      try {
        await this.#deliver(body);
      } catch (error) {
        // Some runtimes quote the URL, which may hold a secret.
        const why = textWithCause(error).replaceAll(/https?:\/\/\S+/gi, "…");
        this.#log.warn("Cannot deliver a notification", { error: why });
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
        // A status of 429 means that the receiver already has the notification.
        if (status < 400 || status === 429) return;
        if (status < 500 || last) {
          this.#log.warn("The receiver has refused a notification", { status });
          return;
        }
      } catch (error) {
        if (signal.aborted || last) throw error;
      }
      await sleep(pauseAfter(attempt, PAUSE), { clock, signal });
    }
  }

  async #post(body: string): Promise<number> {
    const { url, headers, clock = systemClock } = this.#options;
    const { fetch = globalThis.fetch } = this.#options;
    const onTimeout = () =>
      new Error(
        `Cannot deliver a notification: the receiver did not answer within ${this.#timeout} ms`,
      );
    const post = async (signal: AbortSignal) => {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
        signal,
        redirect: "error",
      });
      await response.body?.cancel();
      return response.status;
    };
    const { signal } = this.#stopped;
    return await deadline(post, this.#timeout, { clock, signal, onTimeout });
  }
}

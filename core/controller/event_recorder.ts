import { ApiError } from "../api/api_error.ts";
import { type Duration, milliseconds } from "../api/duration.ts";
import { apiVersionOf, type ResolvedKind } from "../api/kind.ts";
import type { DeepPartial, KubernetesObject } from "../api/object.ts";
import { timestamp } from "../api/timestamp.ts";
import { type Clock, deadline } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Client } from "../client/client.ts";

/** Whether a Kubernetes Event tells good or bad news. */
export type EventType = "Normal" | "Warning";

/** How repetitions of an Event are told from it, and whether they count. */
export interface EventOptions {
  /**
   * What makes two events of one object, type and reason the same one, in place
   * of the message; the newest message stands in the Event.
   *
   * @default {the message}
   */
  readonly key?: string | undefined;
  /**
   * Whether repetitions are not even counted.
   *
   * @default {false}
   */
  readonly once?: boolean | undefined;
  /**
   * A repetition that follows the last one sooner than this is dropped.
   *
   * @default {every repetition counts}
   */
  readonly every?: Duration | undefined;
  /**
   * With `every`: whether an Event with these labels is repeated by this one at
   * all. If not, it is written however soon it follows.
   *
   * @default {it always is}
   */
  readonly repeats?:
    | ((labels: Readonly<Record<string, string | undefined>>) => boolean)
    | undefined;
  /**
   * The labels of the Event.
   *
   * @default {none, or those that it has}
   */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** A Kubernetes Event, as far as it is written here. */
interface EventObject extends KubernetesObject {
  type: EventType;
  reason: string;
  message: string;
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
  reportingComponent: string;
  reportingInstance: string;
  source: { component: string };
  involvedObject: {
    apiVersion: string;
    kind: string;
    name: string;
    namespace?: string | undefined;
    uid?: string | undefined;
    resourceVersion?: string | undefined;
  };
}

/** The kind of Kubernetes Events. */
const EVENT: ResolvedKind<EventObject> = {
  group: "",
  version: "v1",
  kind: "Event",
  plural: "events",
  scope: "Namespaced",
};

/** How many different Events may wait to be written. */
const MOST_PENDING = 256;
/** How many milliseconds the last Events may take when the controller stops. */
const FLUSH_LIMIT = 5_000;
/** The longest message that the API server takes, in characters. */
const LONGEST_MESSAGE = 1_024;
/** What the API server allows for a reason, in characters. */
const LONGEST_REASON = 128;

/** What an {@linkcode EventRecorder} works with. */
export interface EventRecorderOptions {
  readonly client: Pick<Client, "find" | "create" | "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Who reports: the name of the controller. */
  readonly component: string;
  /** Which of its replicas reports. */
  readonly instance: string;
}

/** What is recorded. */
export interface RecordedEvent {
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
  readonly options?: EventOptions | undefined;
}

interface Pending {
  readonly object: KubernetesObject;
  readonly kind: ResolvedKind;
  /** What it says in its newest words. */
  event: RecordedEvent;
  readonly first: string;
  last: string;
  count: number;
}

/**
 * Writes Kubernetes Events about objects, best effort: a failure is logged and
 * never fails a run. The same event is written once and then counted.
 *
 * The name of an Event comes from a hash of what it says about which object, so
 * that repetitions are found again, also after a restart.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #pending: Map<string, Pending> = new Map();
  #writing: Promise<void> | undefined;
  /** Ends the writing. */
  readonly #ending: AbortController = new AbortController();

  /** @param options What it works with. */
  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Records an event about an object; returns at once. */
  record(
    object: KubernetesObject,
    kind: ResolvedKind,
    event: RecordedEvent,
  ): void {
    const { clock, log } = this.#options;
    const now = timestamp(clock.wallTime());
    const id = JSON.stringify([
      kind.kind,
      object.metadata.uid,
      event.type,
      event.reason,
      this.#options.component,
      event.options?.key ?? event.message,
    ]);
    const pending = this.#pending.get(id);
    if (pending !== undefined) {
      pending.count++;
      pending.last = now;
      pending.event = event;
    } else if (this.#pending.size < MOST_PENDING) {
      this.#pending.set(id, {
        object,
        kind,
        event,
        first: now,
        last: now,
        count: 1,
      });
    } else log.debug("Event dropped: too many wait", { reason: event.reason });
    this.#writing ??= this.#drain();
  }

  /** Fulfilled when everything recorded so far was written or given up. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  /**
   * Ends the writing: fulfilled when everything recorded was written, or after
   * five seconds, since a server that is down must not keep a process from its
   * end. Nothing is written after that.
   */
  async close(): Promise<void> {
    const { clock } = this.#options;
    const onTimeout = () =>
      new Error(
        `Cannot write an Event: the controller has stopped, and the server did not answer within ${FLUSH_LIMIT} ms`,
      );
    await deadline(this.flush(), FLUSH_LIMIT, { clock, onTimeout })
      .catch((error: unknown) => this.#ending.abort(error));
    // Ends quickly: its requests are aborted if the limit was reached.
    await this.flush();
    this.#ending.abort();
  }

  async #drain(): Promise<void> {
    // Later calls of the same turn find what they would repeat.
    await undefined;
    for (const [id, pending] of this.#pending) {
      this.#pending.delete(id);
      if (this.#ending.signal.aborted) continue;
      try {
        await this.#write(id, pending);
      } catch (error) {
        this.#options.log.warn("Cannot write an Event", {
          reason: pending.event.reason,
          error,
        });
      }
    }
    this.#writing = undefined;
  }

  async #write(id: string, pending: Pending): Promise<void> {
    const { client } = this.#options;
    const { object, event, last } = pending;
    const namespace = object.metadata.namespace ?? "default";
    const name = `${object.metadata.name.slice(0, 220)}.${await digest(id)}`;
    const key = { namespace, name };
    const { signal } = this.#ending;
    const present = await client.find(EVENT, key, { signal });
    if (present === undefined) {
      try {
        await client.create(EVENT, this.#make(key, pending), { signal });
        return;
      } catch (error) {
        if (!ApiError.is(error) || !error.isAlreadyExists) throw error;
      }
    }
    if (present !== undefined && isDropped(event.options, present, last)) {
      return;
    }
    const count = (present?.count ?? 1) + pending.count;
    const message = event.message.slice(0, LONGEST_MESSAGE);
    const labels = changedLabels(present, event.options);
    // A merge patch takes away what is null, which the types of objects lack.
    const body = {
      count,
      lastTimestamp: last,
      message,
      ...(labels !== undefined && { metadata: { labels } }),
    };
    await client.patch(EVENT, key, body as DeepPartial<EventObject>, {
      type: "merge",
      signal,
    });
  }

  #make(
    key: { readonly namespace: string; readonly name: string },
    { object, kind, event, first, last, count }: Pending,
  ): EventObject {
    const { component, instance } = this.#options;
    const { name, namespace, uid, resourceVersion } = object.metadata;
    return {
      metadata: {
        ...key,
        ...(event.options?.labels && { labels: { ...event.options.labels } }),
      },
      type: event.type,
      reason: event.reason.slice(0, LONGEST_REASON),
      message: event.message.slice(0, LONGEST_MESSAGE),
      count,
      firstTimestamp: first,
      lastTimestamp: last,
      reportingComponent: component,
      reportingInstance: instance,
      source: { component },
      involvedObject: {
        apiVersion: apiVersionOf(kind),
        kind: kind.kind,
        name,
        namespace,
        uid,
        resourceVersion,
      },
    };
  }
}

/** Whether a repetition of an event that is there is not to be counted. */
function isDropped(
  options: EventOptions | undefined,
  present: EventObject,
  now: string,
): boolean {
  const { once = false, every, repeats } = options ?? {};
  if (once) return true;
  if (every === undefined) return false;
  const age = Date.parse(now) - Date.parse(present.lastTimestamp);
  return age < milliseconds(every, "every") &&
    (repeats?.(present.metadata.labels ?? {}) ?? true);
}

/** The labels to set and, as null, those to take away. */
function changedLabels(
  present: EventObject | undefined,
  options: EventOptions | undefined,
): Record<string, string | null> | undefined {
  if (options?.labels === undefined) return undefined;
  const gone = Object.keys(present?.metadata.labels ?? {});
  return {
    ...Object.fromEntries(gone.map((name) => [name, null])),
    ...options.labels,
  };
}

/** Sixteen bytes of a SHA-256, as hexadecimal digits. */
async function digest(text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...hash.subarray(0, 16)]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

import { hash } from "node:crypto";
import { ApiError, ifFound } from "../api/api_error.ts";
import { type Duration, milliseconds } from "../api/duration.ts";
import { apiVersionOf, builtIn, type ResolvedKind } from "../api/kind.ts";
import type { DeepPartial, KubernetesObject } from "../api/object.ts";
import type { OptionRules } from "../api/options.ts";
import { timestamp } from "../api/timestamp.ts";
import { immediate } from "../callback.ts";
import { type Clock, deadline } from "../clock.ts";
import { shortText } from "../error_text.ts";
import type { Logger } from "../logger.ts";
import type { Counter, MetricLabels, Metrics } from "../metrics.ts";
import type { Client } from "../client/client.ts";
import { TokenBucket } from "../pace.ts";
import { LatestMap } from "./latest_map.ts";

/** Options of a Kubernetes Event: identity, repetitions and labels. */
export interface EventOptions {
  /**
   * Key that identifies repetitions of an event with the same object, type and
   * reason. Defaults to the message. The Event then shows the newest message.
   */
  readonly key?: string | undefined;
  /**
   * Whether repetitions are ignored, and not even counted.
   *
   * @default {false}
   */
  readonly once?: boolean | undefined;
  /**
   * Minimum time between two repetitions; an earlier repetition is ignored. By
   * default every repetition counts.
   */
  readonly every?: Duration | undefined;
  /**
   * Condition for ignoring a repetition before `every` has passed, given the
   * labels of the existing Event. By default all such repetitions are ignored.
   */
  readonly repeats?:
    | ((labels: Readonly<Record<string, string | undefined>>) => boolean)
    | undefined;
  /**
   * New labels of the Event, which replace the existing ones. By default labels
   * are not changed.
   */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Types of the options of an Event. */
export const EVENT_OPTIONS: OptionRules<EventOptions> = {
  key: "string?",
  once: "boolean?",
  every: "duration?",
  repeats: "function?",
  labels: "object?",
};

/** Kubernetes Event with the fields that the recorder writes. */
interface EventObject extends KubernetesObject {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
  reportingComponent: string;
  reportingInstance: string;
  source: { component: string };
  involvedObject: Readonly<Record<string, string | undefined>>;
}

const EVENT = builtIn<EventObject>("Event", "Namespaced");

/** Maximum number of different events that wait to be written. */
const MAX_PENDING = 256;
/**
 * Writes of Events about one object: a burst, and then one in this time, as with
 * client-go. An object whose runs loop would otherwise fill the storage of the server.
 */
const OBJECT_BURST = 25;
const OBJECT_INTERVAL_MS = 5 * 60_000;
/** Number of objects whose writes are limited: those with the latest Events. */
const MAX_OBJECTS = 2_048;
/** Time limit for writing the last events when the controller stops. */
const FLUSH_LIMIT_MS = 5_000;
/** Maximum length of a message that the API server accepts, in characters. */
const MAX_MESSAGE_LENGTH = 1_024;
/** Maximum length of a reason that the API server accepts, in characters. */
const MAX_REASON_LENGTH = 128;

export interface EventRecorderDeps {
  readonly client: Pick<Client, "find" | "create" | "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Name of the controller, the reporting component. */
  readonly controller: string;
  /** Name of the replica, the reporting instance. */
  readonly instance: string;
}

export interface RecordedEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  readonly options?: EventOptions | undefined;
}

/** Event that waits to be written. */
interface PendingEvent {
  readonly object: KubernetesObject;
  readonly kind: ResolvedKind;
  /** Latest repetition of the event. */
  event: RecordedEvent;
  /** Timestamp of the first repetition. */
  readonly first: string;
  /** Timestamp of the latest repetition. */
  last: string;
  count: number;
}

/**
 * Recorder of Kubernetes Events about objects. It writes in the background; a
 * failure is logged and counted, and never fails a run. Repetitions increase the count of
 * the existing Event.
 *
 * The name of an Event contains a hash of the object, type, reason and message,
 * so that repetitions are found even after a restart. Of the Events about one object
 * 25 are written at once, and then one in five minutes; others are dropped.
 */
export class EventRecorder {
  readonly #deps: EventRecorderDeps;
  readonly #pending: Map<string, PendingEvent> = new Map();
  /** Writes that each object has left. */
  readonly #budgets: LatestMap<TokenBucket> = new LatestMap(MAX_OBJECTS);
  readonly #dropped: Counter;
  readonly #labels: MetricLabels;
  #writing: Promise<void> | undefined;
  /** Whether events were dropped since all that waited were written. */
  #overflows = false;
  /** Abort controller that ends the requests when the recorder closes. */
  readonly #ending: AbortController = new AbortController();

  constructor(deps: EventRecorderDeps) {
    const { controller, metrics } = deps;
    this.#deps = deps;
    this.#labels = Object.freeze({ controller });
    this.#dropped = metrics.counter({
      name: "coracle_events_dropped_total",
      help:
        "Kubernetes Events that were not written: too many waited or were about one object, the server refused them, or the controller stopped.",
      labels: ["controller"],
    });
    this.#dropped.add(0, this.#labels); // An alert sees no growth of a new series.
  }

  /** Records an event about an object; returns before it is written. */
  record(
    object: KubernetesObject,
    kind: ResolvedKind,
    event: RecordedEvent,
  ): void {
    const { clock, log } = this.#deps;
    const now = timestamp(clock.wallTime());
    const id = JSON.stringify([
      kind.kind,
      object.metadata.uid,
      event.type,
      event.reason,
      this.#deps.controller,
      event.options?.key ?? event.message,
    ]);
    const pending = this.#pending.get(id);
    if (pending !== undefined) {
      pending.count++;
      pending.last = now;
      pending.event = event;
    } else if (this.#pending.size < MAX_PENDING) {
      const times = { first: now, last: now, count: 1 };
      this.#pending.set(id, { object, kind, event, ...times });
    } else {
      this.#dropped.add(1, this.#labels);
      if (!this.#overflows) {
        log.warn("Events are dropped: too many wait", { reason: event.reason });
      }
      this.#overflows = true;
    }
    this.#writing ??= this.#drain();
  }

  /** Waits until all events so far are written or have failed. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  /**
   * Closes the recorder: fulfilled when all events are written, or after five
   * seconds, since an unavailable server must not prevent the end of the process.
   * Nothing is written after that.
   */
  async close(): Promise<void> {
    const { clock } = this.#deps;
    const onTimeout = () =>
      new Error(
        `Cannot write an Event: the controller has stopped, and the server did not answer within ${FLUSH_LIMIT_MS} ms`,
      );
    await deadline(this.flush(), FLUSH_LIMIT_MS, { clock, onTimeout })
      .catch((error: unknown) => this.#ending.abort(error));
    // Ends quickly: its requests are aborted if the limit was reached.
    await this.flush();
    this.#ending.abort();
  }

  async #drain(): Promise<void> {
    // Repetitions in the same turn of the event loop are counted before.
    await undefined;
    for (const [id, pending] of this.#pending) {
      this.#pending.delete(id);
      try {
        if (
          !this.#ending.signal.aborted && await this.#writeInBudget(id, pending)
        ) continue;
      } catch (error) {
        this.#deps.log.warn("Cannot write an Event", {
          reason: pending.event.reason,
          error,
        });
      }
      this.#dropped.add(pending.count, this.#labels);
    }
    this.#overflows = false;
    this.#writing = undefined;
  }

  /** Writes an event unless its object has had too many; returns whether it did. */
  async #writeInBudget(id: string, pending: PendingEvent): Promise<boolean> {
    const { clock, log } = this.#deps;
    const { object, kind, event } = pending;
    const { namespace, name, uid } = object.metadata;
    const key = uid ?? `${kind.kind} ${namespace}/${name}`;
    const budget = this.#budgets.get(key) ??
      new TokenBucket(OBJECT_INTERVAL_MS, OBJECT_BURST);
    this.#budgets.set(key, budget);
    if (budget.take(clock.now()) > 0) {
      log.debug("An Event is dropped: there are too many about its object", {
        reason: event.reason,
        object: namespace === undefined ? name : `${namespace}/${name}`,
      });
      return false;
    }
    // What is ignored on purpose costs no write.
    if (!await this.#write(id, pending)) budget.giveBack();
    return true;
  }

  /** Writes an event; returns false if it is a repetition that is ignored. */
  async #write(id: string, pending: PendingEvent): Promise<boolean> {
    const { client } = this.#deps;
    const { object, event, last } = pending;
    const { name, namespace = "default" } = object.metadata;
    const suffix = hash("sha256", id).slice(0, 32);
    const prefix = name.slice(0, 220).replace(/[-.]+$/, "");
    const key = { namespace, name: `${prefix}.${suffix}` };
    const { signal } = this.#ending;
    const present = await client.find(EVENT, key, { signal });
    if (present === undefined) {
      try {
        await client.create(EVENT, this.#make(key, pending), { signal });
        return true;
      } catch (error) {
        if (!ApiError.is(error) || !error.isAlreadyExists) throw error;
      }
    }
    if (present !== undefined && isDropped(event.options, present, last)) {
      return false;
    }
    const labels = changedLabels(present, event.options);
    // In a merge patch null deletes a label; the types do not allow null.
    const body = {
      count: (present?.count ?? 1) + pending.count,
      lastTimestamp: last,
      message: shortText(event.message, MAX_MESSAGE_LENGTH),
      ...(labels !== undefined && { metadata: { labels } }),
    } as DeepPartial<EventObject>;
    const patched = client.patch(EVENT, key, body, { type: "merge", signal });
    if (await ifFound(patched) === undefined) {
      // It has expired since it was read.
      await client.create(EVENT, this.#make(key, pending), { signal });
    }
    return true;
  }

  #make(
    key: { readonly namespace: string; readonly name: string },
    { object, kind, event, first, last, count }: PendingEvent,
  ): EventObject {
    const { controller, instance } = this.#deps;
    const { name, namespace, uid, resourceVersion } = object.metadata;
    return {
      metadata: {
        ...key,
        ...(event.options?.labels && { labels: { ...event.options.labels } }),
      },
      type: event.type,
      reason: shortText(event.reason, MAX_REASON_LENGTH),
      message: shortText(event.message, MAX_MESSAGE_LENGTH),
      count,
      firstTimestamp: first,
      lastTimestamp: last,
      reportingComponent: controller,
      reportingInstance: instance,
      source: { component: controller },
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

/** Whether a repetition of an existing Event is ignored. */
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
    (immediate(repeats?.(present.metadata.labels ?? {}), "repeats()") ?? true);
}

/** Labels to set and, as null, labels to remove. */
function changedLabels(
  present: EventObject | undefined,
  options: EventOptions | undefined,
): Record<string, string | null> | undefined {
  if (options?.labels === undefined) return undefined;
  const existing = Object.keys(present?.metadata.labels ?? {});
  return {
    ...Object.fromEntries(existing.map((name) => [name, null])),
    ...options.labels,
  };
}

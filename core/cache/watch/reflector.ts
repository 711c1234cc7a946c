/**
 * Reflector: lists and watches one collection and passes objects and events to a
 * {@linkcode ReflectorSink}, with time limits, back-pressure and recovery.
 *
 * Guarantees: the receiver gets a whole state first and then every change in
 * order; no failure ends the watch: failures are counted, reported in health and
 * retried.
 *
 * The borrow rule: a header, an event and a byte range are valid until the call
 * that received them returns (or the promise that it returned is fulfilled). The
 * next line of the stream reuses the bytes and the objects. To keep one, copy it
 * (`ObjectHeader.copy()`, `CacheEvent.detach()`, `BodyCopy`); strings and decoded
 * objects may be kept.
 *
 * Must not import `cache/informer`; of `cache/store` only the memory budget and
 * types.
 *
 * @module
 */

import { ApiError } from "../../api/api_error.ts";
import { isResolved, type Kind, type ResolvedKind } from "../../api/kind.ts";
import { compareResourceVersions } from "../../api/resource_version.ts";
import type { ApiRequest } from "../../client/request.ts";
import { statusError } from "../../client/response.ts";
import { type Clock, sleep } from "../../clock.ts";
import { parseRange } from "../../json/byte_range.ts";
import type { WatchEventType } from "../../json/event_scanner.ts";
import type { ListHeader } from "../../json/list_scanner.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import type { Logger } from "../../logger.ts";
import { BackOff, type ConcurrencyLimit } from "../../pace.ts";
import { abortable } from "../../signals.ts";
import type { MemoryBudget } from "../store/memory_budget.ts";
import {
  readEvents,
  readPage,
  type ReceiveDeps,
  type TimeSlice,
} from "./receive.ts";
import type { ReconnectSettings } from "./reconnect.ts";
import { ResponseReader } from "./response_reader.ts";
import {
  ConnectionFault,
  namingRule,
  type ReflectorState,
  type Remedy,
  remedyFor,
} from "./watch_failure.ts";
import {
  type InformerMetrics,
  type WatchHealth,
  WatchRecord,
} from "./watch_record.ts";
import {
  type InformerClient,
  pageRequest,
  streamRequest,
  type WatchTarget,
} from "./watch_requests.ts";

/** Annotation of the bookmark that ends the initial events of a watch. */
const INITIAL_EVENTS_END = "k8s.io/initial-events-end";
/** Maximum pause between two initial events; after it they count as endless. */
const INITIAL_EVENT_LIMIT_MS = 60_000;
/** Maximum silence of a watch with bookmarks, which arrive about every minute. */
const BOOKMARK_LIMIT_MS = 180_000;
/**
 * Share of its timeout for which a watch without bookmarks may be silent: 100 to
 * 200 seconds by default.
 */
const RENEWAL_SHARE = 1 / 3;
/** Minimum age of a watch that is reopened without a pause when it ends. */
const SHORT_WATCH_MS = 5_000;
/**
 * Bytes that a read of a state counts at least: what may wait unread on a stream of
 * HTTP/2.
 */
const LEAST_STATE_BYTES = 256 << 10;
/** Number of failed WatchList streams after which only pages are requested. */
const MAX_STREAM_FAILURES = 3;
/**
 * Timeout of a watch that catches up after a restore, in seconds. The server sends
 * a bookmark two seconds before the end of a watch (kube-apiserver's
 * `nextBookmarkTime`).
 */
const CATCH_UP_SECONDS = 3;
/** Number of such watches after which the whole state is read instead. */
const MAX_CATCH_UPS = 3;

/**
 * Receiver of the events of a {@linkcode Reflector}, with the events of kube-rs'
 * `watcher::Event`. Headers are valid during the call only.
 *
 * Expected flow: `init`, any number of `initApply` and `delete`, `initDone`, then
 * `apply`, `delete` and `bookmark` until the next `init`. After an `init` without
 * `initDone`, `init` is called again.
 */
export interface ReflectorSink {
  /** Starts the delivery of a whole state. */
  init(): void;
  /** Receives one object of the whole state. */
  initApply(header: ObjectHeader): void;
  /** Receives the slot of one object that a restore has stored. */
  initRestored(slot: number): void;
  /**
   * Ends the whole state: objects that were not in it do not exist. No other
   * method is called until the promise resolves.
   *
   * @throws {ConnectionFault} If the state must be read again.
   */
  initDone(resourceVersion: string): Promise<void>;
  /**
   * Ends a whole state that was restored, from which a watch resumes. What has
   * happened since follows, then {@linkcode ReflectorSink.caughtUp}.
   */
  restored(resourceVersion: string): void;
  /** Notes that a watch has delivered what has happened since the restored state. */
  caughtUp(): void;
  /** Receives the new state of an object that was added or modified. */
  apply(header: ObjectHeader): void;
  /** Receives the last state of a deleted object. */
  delete(header: ObjectHeader): void;
  /** Receives a bookmark: all changes up to this version have been delivered. */
  bookmark(resourceVersion: string): void;
  /** Flushes counted changes, after a slice of work and on an idle stream. */
  flush(): void;
}

export interface ReflectorDeps extends Omit<WatchTarget, "kind"> {
  readonly client: InformerClient;
  readonly kind: Kind;
  readonly sink: ReflectorSink;
  /** Limits of the time per event-loop turn, shared with the receiver. */
  readonly slice: TimeSlice;
  readonly budget?: MemoryBudget | undefined;
  /** Limit of the bytes of first states that informers read at the same time. */
  readonly starts?: ConcurrencyLimit | undefined;
  /** Limit of the bytes of later states: nobody's first one waits for those. */
  readonly relists?: ConcurrencyLimit | undefined;
  /** Bytes of the state that is stored now. */
  readonly storedBytes?: (() => number) | undefined;
  readonly reconnect: ReconnectSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: InformerMetrics;
  /**
   * Restores the state of an earlier process, by calls of the target; called once,
   * before the first state is read.
   *
   * @returns Version from which a watch resumes; undefined if the state must be
   * read, perhaps after parts of another one were restored.
   */
  readonly restore?:
    | ((
      target: { begin(): void; take(slot: number): void },
      receiving: ReceiveDeps,
    ) => Promise<string | undefined>)
    | undefined;
  /** Callback for a kind that has another plural or scope than before. */
  readonly onMoved?: ((kind: ResolvedKind) => void) | undefined;
}

/**
 * Version that a stream has reached. It changes with every event and is rarely
 * read, so it is kept as a number where that is exact; the text is made on demand.
 */
export class VersionMark {
  /** Version as a number; NaN if a number cannot represent it exactly. */
  #number = NaN;
  #text = "";

  /** Version as text; empty before the first one. */
  get text(): string {
    return Number.isNaN(this.#number) ? this.#text : String(this.#number);
  }

  set text(version: string) {
    this.#number = NaN;
    this.#text = version;
  }

  moveTo(header: ObjectHeader): void {
    this.#number = header.versionNumber;
    if (Number.isNaN(this.#number)) this.#text = header.resourceVersion;
  }

  /** Whether the mark is newer than the version of a header. */
  isAheadOf(header: ObjectHeader): boolean {
    const difference = this.#number - header.versionNumber;
    return Number.isNaN(difference)
      ? compareResourceVersions(this.text, header.resourceVersion) > 0
      : difference > 0;
  }
}

/**
 * Reflector of a collection: lists and watches it, passes its events to a
 * {@linkcode ReflectorSink}, and recovers from every failure of the connection.
 * {@linkcode remedyFor} chooses the recovery, {@linkcode BackOff} the pause before
 * it. The progress is a {@linkcode ReflectorState} in one field.
 */
export class Reflector {
  readonly #deps: ReflectorDeps;
  readonly #record: WatchRecord;
  readonly #backOff: BackOff;
  readonly #receiving: ReceiveDeps;
  readonly #stop: AbortController = new AbortController();
  #running: Promise<void> | undefined;
  #response: ResponseReader | undefined;
  #state: ReflectorState = "empty";
  #resolved: ResolvedKind | undefined;
  /** Kind as it was resolved before the server showed that this may be wrong. */
  #former: ResolvedKind | undefined;

  /** Version up to which all was delivered; empty before the first state. */
  readonly #version: VersionMark = new VersionMark();
  /** Number of watches that have been opened to catch up; undefined if it has. */
  #catchUps: number | undefined;
  #triedRestore = false;
  /** Why the whole state must be read again, until that is noted. */
  #doubt: ConnectionFault | undefined;
  /** Whether the server lost the known version, so that its newest state is read. */
  #versionGone = false;
  /** Whether the next state is read as a WatchList stream. */
  #watchList: "yes" | "not-next-time" | "never";
  #streamFailures = 0;
  /** Whether the server sends bookmarks to this collection, so that silence is a fault. */
  #sendsBookmarks = false;
  /** Silence after which a watch without bookmarks is renewed, in milliseconds. */
  #renewAfter = Infinity;
  /** Time of the last retry without a pause. */
  #immediateRetryAt = -Infinity;
  /** Limit that the present read of a state counts towards, and its bytes. */
  #entered:
    | { readonly limit: ConcurrencyLimit; readonly bytes: number }
    | undefined;

  constructor(deps: ReflectorDeps) {
    const { clock, random, reconnect, sink } = deps;
    this.#deps = deps;
    this.#record = new WatchRecord(deps);
    this.#receiving = {
      slice: deps.slice,
      clock,
      budget: deps.budget,
      signal: this.#stop.signal,
      onBytes: () => this.#record.contact(),
      onIdle: () => sink.flush(),
    };
    this.#watchList = reconnect.watchList ? "yes" : "never";
    this.#backOff = new BackOff(reconnect, clock, random);
  }

  /** Starts the watch; safe to repeat. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Stops the watch and resolves when nothing of it is left; safe to repeat. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#response?.close();
    await this.#running;
    this.#record.state = "stopped";
  }

  /**
   * Reads the whole state again, whatever is being read.
   *
   * @param fault Why: a failure whose remedy is a relist.
   */
  relist(fault: ConnectionFault): void {
    this.#doubt = fault;
    this.#response?.close(fault);
  }

  health(): WatchHealth {
    return this.#record.health();
  }

  /** Promise that is fulfilled when the first state was read, or its read failed. */
  get attempted(): Promise<void> {
    return this.#record.attempted;
  }

  get #stopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Whether a whole state was delivered, so that a watch can resume. */
  get #isComplete(): boolean {
    return this.#state === "init-listed" || this.#state === "watching";
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#attempt();
      } catch (error) {
        if (!this.#stopped) await this.#recover(error);
      }
    }
  }

  async #attempt(): Promise<void> {
    this.#record.state = "connecting";
    if (!this.#triedRestore) await this.#restore();
    if (this.#doubt !== undefined) throw this.#doubt;
    const target = await this.#target();
    if (this.#state === "init-listed") {
      this.#state = "watching";
      return await this.#watch(target);
    }
    await this.#enter();
    try {
      this.#state = this.#watchList === "yes" ? "initial-watch" : "init-page";
      this.#record.stateBegun();
      this.#catchUps = undefined;
      this.#deps.sink.init();
      if (this.#state === "initial-watch") await this.#watch(target);
      else await this.#list(target);
    } finally {
      this.#leave();
    }
  }

  /** Restores the state of an earlier process, if there is one. */
  async #restore(): Promise<void> {
    this.#triedRestore = true;
    const { restore, sink } = this.#deps;
    if (restore === undefined) return;
    const version = await restore({
      begin: () => {
        this.#record.state = "syncing";
        sink.init();
      },
      take: (slot) => sink.initRestored(slot),
    }, this.#receiving);
    if (version === undefined) return;
    sink.restored(version);
    this.#version.text = version;
    this.#state = "init-listed";
    this.#catchUps = 0;
  }

  /** Notes that a watch has caught up with the server after a restore. */
  #caughtUp(): void {
    this.#catchUps = undefined;
    this.#deps.sink.caughtUp();
    this.#record.stateRead();
  }

  /** Waits until the state may be read. */
  async #enter(): Promise<void> {
    const { relists, starts, storedBytes } = this.#deps;
    const limit = this.#record.synced ? relists : starts;
    const bytes = Math.max(LEAST_STATE_BYTES, storedBytes?.() ?? 0);
    this.#stop.signal.throwIfAborted();
    if (limit === undefined) return;
    await limit.enter(this.#stop.signal, bytes);
    this.#entered = { limit, bytes };
  }

  /** Lets others begin: the state was read, or reading it has failed. */
  #leave(): void {
    this.#entered?.limit.leave(this.#entered.bytes);
    this.#entered = undefined;
  }

  async #target(): Promise<WatchTarget> {
    const { client, kind, onMoved } = this.#deps;
    if (this.#resolved === undefined) {
      const resolved = this.#resolved = isResolved(kind)
        ? kind
        : await abortable(
          client.resolve(kind, { fresh: this.#former !== undefined }),
          this.#stop.signal,
        );
      const { plural, scope } = this.#former ?? resolved;
      this.#former = undefined;
      if (plural !== resolved.plural || scope !== resolved.scope) {
        onMoved?.(resolved);
      }
    }
    const { labelSelector, fieldSelector, shardSelector } = this.#deps;
    const { namespace, metadataOnly } = this.#deps;
    return {
      kind: this.#resolved,
      namespace,
      metadataOnly,
      labelSelector,
      fieldSelector,
      shardSelector,
    };
  }

  /**
   * Reads changes until the server ends the stream, and the whole state before
   * them if it is not complete.
   */
  async #watch(target: WatchTarget): Promise<void> {
    const { reconnect, random } = this.#deps;
    const usual = Math.ceil(reconnect.minWatchTimeout * (1 + random()) / 1000);
    const timeoutSeconds = this.#catchUps === undefined
      ? usual
      : Math.min(usual, CATCH_UP_SECONDS);
    const request = streamRequest(target, {
      resourceVersion: this.#versionGone ? "" : this.#version.text,
      timeoutSeconds,
      initialEvents: !this.#isComplete,
    });
    this.#renewAfter = usual * 1000 * RENEWAL_SHARE;
    const response = this.#open(request, {
      silence: this.#isComplete ? Infinity : reconnect.grace,
      total: timeoutSeconds * 1000 + reconnect.grace,
    });
    let events: number;
    try {
      await response.open();
      if (this.#isComplete) this.#expectChanges(response);
      this.#record.state = this.#isComplete ? "watching" : "syncing";
      this.#record.watchOpened();
      events = await readEvents(
        response,
        (type, header) => this.#take(type, header, response),
        this.#receiving,
      );
    } finally {
      this.#close(response);
    }
    await this.#afterCleanEnd(response, events);
  }

  #take(
    type: WatchEventType,
    header: ObjectHeader,
    response: ResponseReader,
  ): Promise<void> | undefined {
    if (type === "ERROR") {
      this.#state = "error-event";
      throw statusError(response.action, parseRange(header));
    }
    this.#record.works();
    if (type === "BOOKMARK") return this.#takeBookmark(header, response);
    const name = header.string("name"); // not decoded: called for every event
    if (name.start >= name.end) {
      throw new ConnectionFault(
        "garbage",
        `Cannot ${response.action}: the object of an event must have a name: received ${type} without one`,
      );
    }
    this.#checkScope(header, response);
    const { sink } = this.#deps;
    if (this.#state === "watching") {
      this.#advance(header, response);
      if (type === "DELETED") sink.delete(header);
      else sink.apply(header);
    } else {
      if (type === "ADDED") response.progress();
      if (type === "DELETED") sink.delete(header);
      else sink.initApply(header);
      this.#checkForEnd(response);
    }
    return undefined;
  }

  /**
   * Fails if an object contradicts the scope of its kind: its definition was
   * deleted and came back with another scope, which a watch of all namespaces
   * does not notice by a path that is gone.
   */
  #checkScope(header: ObjectHeader, response: ResponseReader): void {
    const { kind } = this.#deps;
    if (this.#resolved === undefined || isResolved(kind)) return;
    const namespace = header.string("namespace"); // not decoded, as the name
    const isNamespaced = namespace.start < namespace.end;
    if (isNamespaced === (this.#resolved.scope === "Namespaced")) return;
    throw new ConnectionFault(
      "moved",
      `Cannot ${response.action}: an object of scope ${this.#resolved.scope} must ${
        isNamespaced ? "have no" : "have a"
      } namespace: received "${header.name}"`,
    );
  }

  #takeBookmark(
    header: ObjectHeader,
    response: ResponseReader,
  ): Promise<void> | undefined {
    if (this.#state === "watching") {
      this.#advance(header, response);
      this.#deps.sink.bookmark(this.#version.text);
      if (this.#catchUps !== undefined) this.#caughtUp();
      this.#sendsBookmarks = true;
      this.#expectChanges(response);
    } else if (header.annotation(INITIAL_EVENTS_END) === "true") {
      this.#expectChanges(response);
      return this.#initDone(header.resourceVersion);
    } else this.#checkForEnd(response);
    return undefined;
  }

  /**
   * Limits the silence of a watch that has delivered the state. Without bookmarks,
   * a quiet watch looks like one whose connection is dead, which a proxy may hide:
   * it is renewed, which loses nothing and is no failure.
   */
  #expectChanges(response: ResponseReader): void {
    if (this.#sendsBookmarks) response.expectWithin(BOOKMARK_LIMIT_MS);
    else response.endAfter(this.#renewAfter);
  }

  /**
   * Advances to the version of an event, and fails if it is older: a server that
   * lost its data counts from the start again and would send nothing until it has
   * caught up.
   */
  #advance(header: ObjectHeader, response: ResponseReader): void {
    if (this.#version.isAheadOf(header)) {
      throw new ConnectionFault(
        "backwards",
        `Cannot ${response.action}: an event must not be older than the state before it, ${this.#version.text}: received ${header.resourceVersion}`,
      );
    }
    this.#version.moveTo(header);
  }

  /**
   * Fails if the bookmark that ends the initial events is overdue, as with a
   * server that does not know `sendInitialEvents`.
   */
  #checkForEnd(response: ResponseReader): void {
    if (response.sinceProgress <= INITIAL_EVENT_LIMIT_MS) return;
    throw new ConnectionFault(
      "no-end",
      `Cannot ${response.action}: a bookmark must end the initial events: received no object of them for ${response.sinceProgress} ms`,
    );
  }

  /**
   * Reads the whole state in pages.
   *
   * If that takes longer than the server keeps the state of the pages, reading
   * starts over with one page of all objects: that cannot expire, and its size
   * does not matter, as no page is held in memory as a whole.
   */
  async #list(target: WatchTarget): Promise<void> {
    // The server may serve a first list from its cache; later ones must not go
    // back behind the version that was seen.
    const resourceVersion = this.#versionGone ? "" : this.#version.text || "0";
    let limit: number | undefined = this.#deps.reconnect.pageSize;
    let continueToken = "";
    for (;;) {
      try {
        const page = await this.#page(
          pageRequest(target, { limit, continueToken, resourceVersion }),
        );
        if (page.continue === "") return this.#initDone(page.resourceVersion);
        if (page.continue === continueToken) {
          throw new ConnectionFault(
            "garbage",
            "Cannot read all pages: a page must not lead to itself: received its own continue token",
          );
        }
        continueToken = page.continue;
      } catch (error) {
        if (continueToken === "" || !ApiError.is(error) || !error.isGone) {
          throw error;
        }
        this.#noteFailure(error, "expired_continue");
        this.#deps.sink.init();
        limit = undefined;
        continueToken = "";
      }
    }
  }

  async #page(request: ApiRequest): Promise<ListHeader> {
    const { sink, reconnect } = this.#deps;
    const response = this.#open(request, {
      silence: reconnect.responseTimeout,
    });
    try {
      await response.open();
      this.#record.state = "syncing";
      const page = await readPage(
        response,
        (header) => {
          this.#checkScope(header, response);
          return sink.initApply(header);
        },
        this.#receiving,
      );
      this.#record.works();
      return page;
    } finally {
      this.#close(response);
    }
  }

  async #initDone(resourceVersion: string): Promise<void> {
    await this.#deps.sink.initDone(resourceVersion);
    this.#leave();
    this.#stop.signal.throwIfAborted();
    const isStream = this.#state === "initial-watch";
    if (isStream) this.#streamFailures = 0;
    if (this.#watchList === "not-next-time") this.#watchList = "yes";
    this.#version.text = resourceVersion;
    this.#versionGone = false;
    this.#state = isStream ? "watching" : "init-listed";
    this.#record.stateRead();
  }

  #open(
    request: ApiRequest,
    limits: { readonly silence: number; readonly total?: number },
  ): ResponseReader {
    // A stop closes the open response: none may be opened after it.
    this.#stop.signal.throwIfAborted();
    const { client, clock, reconnect } = this.#deps;
    this.#response = new ResponseReader(request, {
      client,
      clock,
      limits: { head: reconnect.responseTimeout, ...limits },
    });
    return this.#response;
  }

  #close(response: ResponseReader): void {
    response.close();
    this.#record.watchClosed();
    this.#deps.sink.flush();
  }

  async #afterCleanEnd(
    response: ResponseReader,
    events: number,
  ): Promise<void> {
    if (this.#state !== "watching") {
      throw new ConnectionFault(
        "broken",
        `Cannot ${response.action}: the stream ended before the bookmark that ends the initial events`,
      );
    }
    this.#state = "init-listed";
    if (this.#catchUps !== undefined) {
      // Without a bookmark, a watch may have ended within a backlog of events.
      if (events === 0) this.#caughtUp();
      else if (++this.#catchUps >= MAX_CATCH_UPS) this.#state = "empty";
      return;
    }
    // Protects a server or proxy that ends every watch immediately.
    if (response.age < SHORT_WATCH_MS && !this.#stopped) {
      await this.#pause(
        events > 0 ? this.#backOff.short() : this.#backOff.next(),
      );
    }
  }

  async #recover(error: unknown): Promise<void> {
    const remedy = remedyFor(error, this.#state);
    if (error === this.#doubt) this.#doubt = undefined;
    // A server that has just started sends no bookmark before its first event.
    if (remedy.reason === "silent") this.#sendsBookmarks = false;
    this.#noteFailure(error, remedy.reason);
    const isMoved = error instanceof ConnectionFault &&
      error.reason === "moved";
    if (isMoved || (ApiError.is(error) && error.isNotFound)) {
      this.#former ??= this.#resolved;
      this.#resolved = undefined;
    }
    if (remedy.versionGone) this.#versionGone = true;
    this.#chooseSource(remedy);
    // A server that does not end a watch in time says too little to catch up.
    const isHeard = this.#catchUps === undefined || remedy.reason !== "overdue";
    if (remedy.relist || !isHeard) this.#state = "empty";
    else if (this.#state === "watching") this.#state = "init-listed";
    // A state that was read successfully in between does not justify another
    // immediate retry: a server may refuse every watch that follows it.
    const { clock, reconnect } = this.#deps;
    const now = clock.now();
    if (
      remedy.immediate && now - this.#immediateRetryAt >= reconnect.resetAfter
    ) this.#immediateRetryAt = now;
    else await this.#pause(this.#backOff.next(remedy.retryAfter));
  }

  #chooseSource({ pages }: Remedy): void {
    if (this.#watchList === "never") return;
    if (this.#state === "initial-watch" && pages !== "no") {
      this.#streamFailures++;
    }
    if (pages === "always" || this.#streamFailures >= MAX_STREAM_FAILURES) {
      this.#watchList = "never";
    } else if (pages === "once") this.#watchList = "not-next-time";
  }

  #noteFailure(error: unknown, reason: string): void {
    const named = namingRule(error, this.#resolved, this.#deps.namespace);
    this.#record.failed(named, reason, this.#response?.action);
  }

  async #pause(duration: number): Promise<void> {
    this.#record.state = "waiting";
    try {
      const { clock } = this.#deps;
      await sleep(duration, { clock, signal: this.#stop.signal });
    } catch {
      // It was stopped during the pause: the loop ends.
    }
  }
}

import { ApiError, type Status } from "../../api/api_error.ts";
import { isResolved, type ResolvedKind } from "../../api/kind.ts";
import type { ApiRequest } from "../../client/request.ts";
import { statusError } from "../../client/response.ts";
import { sleep } from "../../clock.ts";
import type { WatchEventType } from "../../json/event_scanner.ts";
import type { ListHeader } from "../../json/list_scanner.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import { abortable } from "../../signals.ts";
import { BackOff } from "./back_off.ts";
import { ConnectionFault } from "./connection_fault.ts";
import { Exchange } from "./exchange.ts";
import type { WatchHealth } from "../informer/informer_options.ts";
import type { ReflectorParts } from "./reflector_parts.ts";
import { readEvents, readPage, type Receiving } from "./receive.ts";
import { readStatePages } from "./state_pages.ts";
import { VersionMark } from "./version_mark.ts";
import {
  type ReflectorPhase,
  type Remedy,
  remedyFor,
} from "./watch_failure.ts";
import { WatchRecord } from "./watch_record.ts";
import {
  pageRequest,
  streamRequest,
  type WatchTarget,
} from "./watch_requests.ts";

/** The annotation of the bookmark that ends the initial events of a watch. */
const INITIAL_EVENTS_END = "k8s.io/initial-events-end";
/** Initial events among which no object comes for so long have no end. */
const LONGEST_PAUSE_OF_OBJECTS = 60_000;
/** Servers that send bookmarks do so about every minute. */
const SILENCE_AFTER_BOOKMARKS = 180_000;
/** A watch that ends in order sooner than this is not opened again at once. */
const SHORT_WATCH = 5_000;
/** After so many failed streams of initial events, no more are asked for. */
const MOST_STREAM_FAILURES = 3;

/**
 * Reads the state of a collection and then its changes into a sink, and goes on
 * doing so whatever happens to the connection: {@linkcode remedyFor} decides
 * what follows from a failure, {@linkcode BackOff} after which pause.
 */
export class Reflector {
  readonly #parts: ReflectorParts;
  readonly #record: WatchRecord;
  readonly #backOff: BackOff;
  readonly #receiving: Receiving;
  readonly #stop: AbortController = new AbortController();
  #running: Promise<void> | undefined;
  #exchange: Exchange | undefined;
  #phase: ReflectorPhase = "discovery";
  #resolved: ResolvedKind | undefined;

  /** How far the sink was told; empty before the first state. */
  readonly #version: VersionMark = new VersionMark();
  /** Whether the sink has the whole state, so that a watch can go on from it. */
  #complete = false;
  /** Whether the server cannot give a state as new as ours: its newest will do. */
  #versionGone = false;
  /** Whether the state is asked for as a stream: not just now, or never. */
  #streams: "yes" | "skip" | "no";
  #streamFailures = 0;
  /** When a remedy was last to go on at once, on the clock. */
  #hurriedAt = -Infinity;
  /** Lets the next one read its state anew. */
  #leaveQueue: (() => void) | undefined;

  constructor(parts: ReflectorParts) {
    const { clock, random, reconnect, sink } = parts;
    this.#parts = parts;
    this.#record = new WatchRecord(parts);
    this.#receiving = {
      slice: parts.slice,
      clock,
      budget: parts.budget,
      signal: this.#stop.signal,
      onBytes: () => this.#record.contact(),
      onRest: () => sink.rest(),
    };
    this.#streams = reconnect.watchList ? "yes" : "no";
    this.#backOff = new BackOff({
      initial: reconnect.initialDelay,
      max: reconnect.maxDelay,
      resetAfter: reconnect.resetAfter,
      clock,
      random,
    });
  }

  /** Begins; safe to repeat. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends everything and resolves when nothing is left; safe to repeat. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#exchange?.close();
    await this.#running;
    this.#record.state = "stopped";
  }

  /** How it fares. */
  health(): WatchHealth {
    return this.#record.health();
  }

  get #stopped(): boolean {
    return this.#stop.signal.aborted;
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
    this.#phase = "discovery";
    const target = await this.#target();
    if (this.#complete) {
      this.#phase = "watch";
      return await this.#watch(target);
    }
    // A first state is never kept waiting: somebody waits for that.
    this.#leaveQueue = this.#record.synced
      ? await this.#parts.relists?.enter(this.#stop.signal)
      : undefined;
    try {
      this.#phase = this.#streams === "yes" ? "stream" : "list";
      this.#record.beginState();
      this.#parts.sink.beginState();
      if (this.#phase === "stream") await this.#watch(target);
      else await this.#list(target);
    } finally {
      this.#leaveQueue?.();
    }
  }

  async #target(): Promise<WatchTarget> {
    const { client, kind } = this.#parts;
    this.#resolved ??= isResolved(kind)
      ? kind
      : await abortable(client.resolve(kind), this.#stop.signal);
    const parts = this.#parts;
    return {
      kind: this.#resolved,
      namespace: parts.namespace,
      labelSelector: parts.labelSelector,
      fieldSelector: parts.fieldSelector,
      shardSelector: parts.shardSelector,
      metadataOnly: parts.metadataOnly,
    };
  }

  /**
   * Reads changes until the server ends the stream, and the whole state before
   * them if it is not complete.
   */
  async #watch(target: WatchTarget): Promise<void> {
    const { reconnect, random } = this.#parts;
    const timeoutSeconds = Math.ceil(
      reconnect.minWatchTimeout * (1 + random()) / 1000,
    );
    const request = streamRequest(target, {
      resourceVersion: this.#versionGone ? "" : this.#version.text,
      timeoutSeconds,
      initialEvents: !this.#complete,
    });
    const exchange = this.#open(request, {
      silence: this.#complete ? Infinity : reconnect.grace,
      total: timeoutSeconds * 1000 + reconnect.grace,
    });
    let events: number;
    try {
      await exchange.open();
      this.#record.state = this.#complete ? "watching" : "syncing";
      this.#record.watchOpened();
      events = await readEvents(
        exchange,
        (type, header) => this.#take(type, header, exchange),
        this.#receiving,
      );
    } finally {
      this.#close(exchange);
    }
    await this.#afterCleanEnd(exchange, events);
  }

  /** Takes one event of a stream. */
  #take(
    type: WatchEventType,
    header: ObjectHeader,
    exchange: Exchange,
  ): Promise<void> | undefined {
    if (type === "ERROR") {
      this.#phase = "error-event";
      throw statusError(exchange.action, readStatus(header));
    }
    this.#record.works();
    if (type === "BOOKMARK") return this.#takeBookmark(header, exchange);
    const name = header.string("name"); // not decoded: this is for each event
    if (name.start >= name.end) {
      throw new ConnectionFault(
        "garbage",
        `Cannot ${exchange.action}: the object of an event must have a name: received ${type} without one`,
      );
    }
    const { sink } = this.#parts;
    if (this.#complete) {
      this.#advance(header, exchange);
      sink.change(type, header);
    } else {
      if (type === "ADDED") exchange.progress();
      if (type === "DELETED") sink.change(type, header);
      else sink.item(header);
      this.#checkForEnd(exchange);
    }
    return undefined;
  }

  #takeBookmark(
    header: ObjectHeader,
    exchange: Exchange,
  ): Promise<void> | undefined {
    if (this.#complete) {
      this.#advance(header, exchange);
      this.#parts.sink.progress(this.#version.text);
      exchange.expectWithin(SILENCE_AFTER_BOOKMARKS);
    } else if (header.annotation(INITIAL_EVENTS_END) === "true") {
      exchange.expectWithin(Infinity);
      return this.#endState(header.resourceVersion);
    } else this.#checkForEnd(exchange);
    return undefined;
  }

  /**
   * Moves on to the version of an event. A server that lost its data counts from
   * the start again and would tell nothing until it has caught up.
   */
  #advance(header: ObjectHeader, exchange: Exchange): void {
    if (this.#version.isAheadOf(header)) {
      throw new ConnectionFault(
        "backwards",
        `Cannot ${exchange.action}: an event must not be older than the state before it, ${this.#version.text}: received ${header.resourceVersion}`,
      );
    }
    this.#version.moveTo(header);
  }

  /** A server that ignores the wish for initial events sends changes for ever. */
  #checkForEnd(exchange: Exchange): void {
    if (exchange.sinceProgress <= LONGEST_PAUSE_OF_OBJECTS) return;
    throw new ConnectionFault(
      "no-end",
      `Cannot ${exchange.action}: a bookmark must end the initial events: received no object of them for ${exchange.sinceProgress} ms`,
    );
  }

  /** Reads the whole state in pages. */
  async #list(target: WatchTarget): Promise<void> {
    const { sink, reconnect } = this.#parts;
    const resourceVersion = await readStatePages({
      pageSize: reconnect.pageSize,
      resourceVersion: this.#versionGone
        ? ""
        // The server may answer a first list from its cache; later ones must
        // not go back behind what was seen.
        : this.#version.text || "0",
      read: (position) => this.#page(pageRequest(target, position)),
      onExpired: (error) => {
        this.#noteFailure(error, "expired_continue");
        sink.beginState();
      },
    });
    await this.#endState(resourceVersion);
  }

  async #page(request: ApiRequest): Promise<ListHeader> {
    const { sink, reconnect } = this.#parts;
    const exchange = this.#open(request, {
      silence: reconnect.responseTimeout,
    });
    try {
      await exchange.open();
      this.#record.state = "syncing";
      const page = await readPage(
        exchange,
        (header) => sink.item(header),
        this.#receiving,
      );
      this.#record.works();
      return page;
    } finally {
      this.#close(exchange);
    }
  }

  async #endState(resourceVersion: string): Promise<void> {
    await this.#parts.sink.endState(resourceVersion);
    this.#leaveQueue?.();
    this.#stop.signal.throwIfAborted();
    if (this.#phase === "stream") this.#streamFailures = 0;
    if (this.#streams === "skip") this.#streams = "yes";
    this.#phase = "watch";
    this.#version.text = resourceVersion;
    this.#complete = true;
    this.#versionGone = false;
    this.#record.synced = true;
    this.#record.state = "watching";
  }

  #open(
    request: ApiRequest,
    limits: { readonly silence: number; readonly total?: number },
  ): Exchange {
    // A stop closes the exchange that is open: none may be opened after it.
    this.#stop.signal.throwIfAborted();
    const { client, clock, reconnect } = this.#parts;
    this.#exchange = new Exchange(request, {
      send: (sent) => client.request(sent),
      clock,
      limits: { answer: reconnect.responseTimeout, ...limits },
    });
    return this.#exchange;
  }

  #close(exchange: Exchange): void {
    exchange.close();
    this.#record.watchClosed();
    this.#parts.sink.rest();
  }

  async #afterCleanEnd(exchange: Exchange, events: number): Promise<void> {
    if (!this.#complete) {
      throw new ConnectionFault(
        "broken",
        `Cannot ${exchange.action}: a bookmark must end the initial events: received the end of the stream`,
      );
    }
    // A server or proxy that ends every watch at once must not be hammered.
    if (exchange.age < SHORT_WATCH && !this.#stopped) {
      await this.#pause(
        events > 0 ? this.#backOff.short() : this.#backOff.next(),
      );
    }
  }

  async #recover(error: unknown): Promise<void> {
    const remedy = remedyFor(error, this.#phase);
    this.#noteFailure(error, remedy.reason);
    if (remedy.relist) this.#complete = false;
    if (remedy.versionGone) this.#versionGone = true;
    if (ApiError.is(error) && error.isNotFound) this.#resolved = undefined;
    this.#chooseSource(remedy);
    // A state that is read well in between is no reason to hurry again: a server
    // may refuse each watch of it, for ever.
    const { clock, reconnect } = this.#parts;
    const now = clock.now();
    if (remedy.immediate && now - this.#hurriedAt >= reconnect.resetAfter) {
      this.#hurriedAt = now;
    } else await this.#pause(this.#backOff.next(remedy.retryAfter));
  }

  #chooseSource({ pages }: Remedy): void {
    if (this.#streams === "no") return;
    if (this.#phase === "stream" && pages !== "no") this.#streamFailures++;
    if (pages === "always" || this.#streamFailures >= MOST_STREAM_FAILURES) {
      this.#streams = "no";
    } else if (pages === "once") this.#streams = "skip";
  }

  #noteFailure(error: unknown, reason: string): void {
    const action = this.#exchange?.action;
    this.#record.failed({ error, reason, action });
  }

  async #pause(duration: number): Promise<void> {
    this.#record.state = "waiting";
    try {
      const { clock } = this.#parts;
      await sleep(duration, { clock, signal: this.#stop.signal });
    } catch {
      // It was stopped meanwhile: the loop sees it.
    }
  }
}

/** The Status that an ERROR event carries. */
function readStatus(header: ObjectHeader): Partial<Status> {
  const { bytes, start, end } = header;
  const text = new TextDecoder().decode(bytes.subarray(start, end));
  return JSON.parse(text) as Partial<Status>;
}

import { EventScanner, type WatchEventType } from "../../json/event_scanner.ts";
import { LineSplitter } from "../../json/line_splitter.ts";
import { type ListHeader, ListScanner } from "../../json/list_scanner.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import { type Clock, nextTurn, sleep } from "../../clock.ts";
import type { ResponseReader } from "./response_reader.ts";
import { ConnectionFault } from "./watch_failure.ts";
import type { MemoryBudget } from "../store/memory_budget.ts";

/** Maximum time for which one turn of the event loop is busy. */
const SLICE_LIMIT_MS = 6;
/**
 * Busy time of a turn from which the calls of handlers are measured: some 20 events
 * were handled in it.
 */
const SLOW_SLICE_MS = 25;
/**
 * Number of bytes handled between two reads of the clock, as a read costs more
 * than many steps.
 */
const BYTES_BETWEEN_CLOCK_READS = 64 * 1024;
/** Fixed cost of a step, counted in bytes. */
const STEP_COST_BYTES = 2 * 1024;

/**
 * Time slices of long work, so that timers, requests and runs are not delayed
 * however much data arrives.
 *
 * A slice begins only after a pause, not with a chunk of bytes: many chunks of a
 * fast connection arrive in one turn of the event loop.
 */
export class TimeSlice {
  readonly #clock: Clock;
  #start: number;
  #cost = 0;
  /** Whether a slice has taken so long that somebody should say what did. */
  isSlow = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#start = clock.now();
  }

  /**
   * Counts one step.
   *
   * @returns Whether a pause is due.
   */
  step(bytes: number): boolean {
    this.#cost += STEP_COST_BYTES + bytes;
    if (this.#cost < BYTES_BETWEEN_CLOCK_READS) return false;
    this.#cost = 0;
    const busy = this.#clock.now() - this.#start;
    if (busy >= SLOW_SLICE_MS) this.isSlow = true;
    return busy >= SLICE_LIMIT_MS;
  }

  /** Pauses for other work and begins a new slice. */
  async pause(): Promise<void> {
    await nextTurn();
    this.begin();
  }

  /** Begins a new slice. */
  begin(): void {
    this.#start = this.#clock.now();
  }
}

/**
 * Maximum size of an object in a list or in a response for one object. An object
 * that is too long for a line of a watch ends the watch with an error; the list
 * that follows must accept it, or its whole kind could not be watched.
 */
export const MAX_LISTED_BYTES: number = 64 * 1024 * 1024;
/** Minimum number of slices of other readers at which reading pauses for longer. */
const MANY_SLICES = 4;
/** Maximum pause of reading because of other readers. */
const PAUSE_LIMIT_MS = 250;
/** Number of slices of all readers, which share the event loop of the process. */
let slices = 0;
/**
 * Pause after each chunk while memory becomes short. A list still arrives at a
 * megabyte per second, so that a controller starts within its time limit.
 */
const MEMORY_PRESSURE_PAUSE_MS = 50;
/** Number of eviction steps in one slice, of about a millisecond each. */
const EVICTIONS_PER_SLICE = 6;

/**
 * Dependencies of {@linkcode readEvents} and {@linkcode readPage}.
 *
 * Back-pressure instead of failure: while many readers are busy, the caches exceed
 * their budget, or its memory becomes short, nothing is read, so that the
 * connection fills and the server waits.
 */
export interface ReceiveDeps {
  readonly slice: TimeSlice;
  readonly clock: Clock;
  /** Memory budget of the caches; no limit when undefined. */
  readonly budget: MemoryBudget | undefined;
  /** Signal that ends the reading; checked after each slice. */
  readonly signal: AbortSignal;
  /** Callback for each received chunk. */
  onBytes(): void;
  /** Callback for the end of a slice of work, and for an idle stream. */
  onIdle(): void;
}

/**
 * Handler of one event of a watch.
 *
 * @returns A promise if the next event has to wait.
 */
export type TakeEvent = (
  type: WatchEventType,
  header: ObjectHeader,
) => Promise<void> | undefined;

/**
 * Reads a watch to its end.
 *
 * @returns Number of events.
 * @throws {SyntaxError} If a line is not an event.
 * @throws {TooLongError} If a line is too long.
 * @throws {ConnectionFault} If the stream breaks off within a line.
 */
export async function readEvents(
  response: ResponseReader,
  take: TakeEvent,
  receiving: ReceiveDeps,
): Promise<number> {
  const splitter = new LineSplitter();
  const scanner = new EventScanner();
  let events = 0;
  for (;;) {
    let chunk = await response.next();
    if (chunk === undefined) break;
    receiving.onBytes();
    splitter.push(chunk);
    while (splitter.next()) {
      // Awaited only if there is a promise: a turn of the microtask queue for
      // each event would cost as much as its scan.
      const taken = take(scanner.scan(splitter), scanner.header);
      if (taken !== undefined) await taken;
      events++;
      const pause = pauseIfDue(splitter.end - splitter.start, receiving);
      if (pause !== undefined) await pause;
    }
    receiving.onIdle();
    // An idle watch keeps no memory of its connection.
    chunk = undefined;
    splitter.release();
    scanner.release();
    if (receiving.budget?.mustWait()) await makeRoom(receiving);
  }
  if (splitter.finish()) {
    throw new ConnectionFault(
      "broken",
      `Cannot ${response.action}: the stream must not end within a line: received the first ${
        splitter.end - splitter.start
      } bytes of one`,
    );
  }
  return events;
}

/**
 * Reads one page of a list to its end.
 *
 * @throws {SyntaxError} If the page is not a list, or is not complete.
 * @throws {TooLongError} If an item is too long.
 * @throws {ConnectionFault} If the response is not a list.
 */
export async function readPage(
  response: ResponseReader,
  take: (header: ObjectHeader) => void,
  receiving: ReceiveDeps,
): Promise<ListHeader> {
  const scanner = new ListScanner(MAX_LISTED_BYTES);
  for (;;) {
    const chunk = await response.next();
    if (chunk === undefined) break;
    receiving.onBytes();
    scanner.push(chunk);
    while (scanner.next()) {
      take(scanner.header);
      const { start, end } = scanner.header;
      const pause = pauseIfDue(end - start, receiving);
      if (pause !== undefined) await pause;
    }
    receiving.onIdle();
    if (receiving.budget?.mustWait()) await makeRoom(receiving);
  }
  const page = scanner.finish();
  if (page.kind.endsWith("List") && page.resourceVersion !== "") return page;
  // Anything else, a Status for example, would pass for a list without items.
  throw new ConnectionFault(
    "garbage",
    `Cannot ${response.action}: the response must be a list with a resourceVersion: received kind "${page.kind}" with "${page.resourceVersion}"`,
  );
}

/** Counts a step of reading; gives a promise if a pause is due. */
export function pauseIfDue(
  bytes: number,
  receiving: ReceiveDeps,
): Promise<void> | undefined {
  return receiving.slice.step(bytes) ? pause(receiving) : undefined;
}

/**
 * Pauses for other work, and if many readers took that time, once more for as
 * long. After a long run it reads on: the run's events cause one more run
 * together.
 */
async function pause(receiving: ReceiveDeps): Promise<void> {
  const { slice, clock, signal } = receiving;
  receiving.onIdle();
  const before = ++slices;
  await slice.pause();
  signal.throwIfAborted();
  const others = slices - before;
  if (others >= MANY_SLICES) {
    const duration = Math.min(others * SLICE_LIMIT_MS, PAUSE_LIMIT_MS);
    await sleep(duration, { clock, signal });
    slice.begin();
  }
}

/** Waits while the caches exceed their budget, or memory becomes short. */
export function keepBudget(receiving: ReceiveDeps): Promise<void> | undefined {
  return receiving.budget?.mustWait() ? makeRoom(receiving) : undefined;
}

/**
 * Evicts objects until the budget is kept, or nothing is left to evict. While the
 * memory of the process becomes short, it also waits, so that garbage is
 * collected before more data arrives.
 */
async function makeRoom(receiving: ReceiveDeps): Promise<void> {
  const { budget, clock, signal } = receiving;
  while (budget?.settle(EVICTIONS_PER_SLICE) === false) await pause(receiving);
  if (budget?.pressure?.isGrowing) {
    await sleep(MEMORY_PRESSURE_PAUSE_MS, { clock, signal });
  }
}

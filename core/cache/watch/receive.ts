import { EventScanner, type WatchEventType } from "../../json/event_scanner.ts";
import { LineSplitter } from "../../json/line_splitter.ts";
import { type ListHeader, ListScanner } from "../../json/list_scanner.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import { type Clock, sleep } from "../../clock.ts";
import { ConnectionFault } from "./connection_fault.ts";
import type { Exchange } from "./exchange.ts";
import type { MemoryBudget } from "../store/memory_budget.ts";
import type { TimeSlice } from "./time_slice.ts";

/**
 * The longest object of a list, or of an answer of its own. One that is too long
 * for a line of a watch ends the watch with an error; the list that follows must
 * take it all the same, or it would keep its whole kind from being followed.
 */
export const MAX_LISTED_BYTES: number = 64 * 1024 * 1024;
/** An event loop that is later than this has other work to get done first. */
const LATE = 20;
/** For how long nothing is read at most, since the event loop was late. */
const LONGEST_PAUSE = 250;
/**
 * The pause after each chunk while memory becomes short, in milliseconds. A list
 * still arrives with a megabyte a second: it must not outlast the time in which
 * a controller has to start.
 */
const PRESSED_PAUSE = 50;
/** Steps of sinking in one slice, of about a millisecond each. */
const SINKS_PER_SLICE = 6;

/**
 * What reading an answer needs beside it.
 *
 * Who reads slows down rather than fail. While the process is busy with other
 * things, its caches hold more than they may, or its memory becomes short,
 * nothing is read, so that the connection fills and the server waits.
 */
export interface Receiving {
  readonly slice: TimeSlice;
  readonly clock: Clock;
  /** What the caches may hold; no limit when absent. */
  readonly budget: MemoryBudget | undefined;
  /** Ends the reading, by throwing its reason, after each slice. */
  readonly signal: AbortSignal;
  /** Called for each chunk that came. */
  onBytes(): void;
  /** Called when a slice of work is done or the stream rests. */
  onRest(): void;
}

/**
 * Takes one event of a watch.
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
 * @returns How many events there were.
 * @throws {SyntaxError} If a line is no event.
 * @throws {TooLongError} If a line is too long.
 * @throws {ConnectionFault} If the stream breaks off within a line.
 */
export async function readEvents(
  exchange: Exchange,
  take: TakeEvent,
  receiving: Receiving,
): Promise<number> {
  const splitter = new LineSplitter();
  const scanner = new EventScanner();
  let events = 0;
  for (;;) {
    const chunk = await exchange.next();
    if (chunk === undefined) break;
    receiving.onBytes();
    splitter.push(chunk);
    while (splitter.next()) {
      // Awaited only where there is something to wait for: a turn of the
      // microtask queue for each event would cost as much as its scan.
      const taken = take(scanner.scan(splitter), scanner.header);
      if (taken !== undefined) await taken;
      events++;
      const rest = restIfDue(splitter.end - splitter.start, receiving);
      if (rest !== undefined) await rest;
    }
    receiving.onRest();
    if (receiving.budget?.mustWait()) await makeRoom(receiving);
  }
  if (splitter.finish()) {
    throw new ConnectionFault(
      "broken",
      `Cannot ${exchange.action}: the stream must not end within a line: received the first ${
        splitter.end - splitter.start
      } bytes of one`,
    );
  }
  return events;
}

/**
 * Reads one page of a list to its end.
 *
 * @throws {SyntaxError} If the page is no list, or is not complete.
 * @throws {TooLongError} If an item is too long.
 * @throws {ConnectionFault} If it is something else than a list.
 */
export async function readPage(
  exchange: Exchange,
  take: (header: ObjectHeader) => void,
  receiving: Receiving,
): Promise<ListHeader> {
  const scanner = new ListScanner({ maxItemBytes: MAX_LISTED_BYTES });
  for (;;) {
    const chunk = await exchange.next();
    if (chunk === undefined) break;
    receiving.onBytes();
    scanner.push(chunk);
    while (scanner.next()) {
      take(scanner.header);
      const { start, end } = scanner.header;
      const rest = restIfDue(end - start, receiving);
      if (rest !== undefined) await rest;
    }
    receiving.onRest();
    if (receiving.budget?.mustWait()) await makeRoom(receiving);
  }
  const page = scanner.finish();
  if (page.kind.endsWith("List") && page.resourceVersion !== "") return page;
  // Anything else, a Status for example, would pass for a list without items.
  throw new ConnectionFault(
    "garbage",
    `Cannot ${exchange.action}: the answer must be a list with a resourceVersion: received kind "${page.kind}" with "${page.resourceVersion}"`,
  );
}

function restIfDue(
  bytes: number,
  receiving: Receiving,
): Promise<void> | undefined {
  return receiving.slice.step(bytes) ? rest(receiving) : undefined;
}

/** Lets others have their turn, and as much time again if they needed long. */
async function rest(receiving: Receiving): Promise<void> {
  const { slice, clock, signal } = receiving;
  receiving.onRest();
  const lateness = await slice.rest();
  signal.throwIfAborted();
  if (lateness >= LATE) {
    await sleep(Math.min(lateness, LONGEST_PAUSE), { clock, signal });
  }
}

/**
 * Moves objects down until the budget is kept, or nothing is left to move. While
 * the memory of the process becomes short, it waits besides, so that what was
 * let go of is collected before more arrives.
 */
async function makeRoom(receiving: Receiving): Promise<void> {
  const { budget, clock, signal } = receiving;
  while (budget?.settle(SINKS_PER_SLICE) === false) {
    await rest(receiving);
  }
  if (budget?.pressure?.isGrowing) {
    await sleep(PRESSED_PAUSE, { clock, signal });
  }
}

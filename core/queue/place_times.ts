const PAGE_LENGTH = 4_096;
const FIRST_LENGTH = 16;

/** Times of a place that has none, and of one that waits. */
const NONE = 0;
const WAITING = -1;

/** Neighbouring places. */
interface Page {
  /** Number of the page: its first place divided by the length of pages. */
  readonly number: number;
  /** Due time of each place, or a mark. */
  times: Float64Array;
  waiting: number;
  delayed: number;
  /** Lower bound of the due times. */
  earliest: number;
  /** Time at which the first of its places began to wait. */
  since: number;
  /** Whether the cursor will come to the page. */
  isInRound: boolean;
}

/** Place that was taken by the cursor. */
export interface TakenPlace {
  readonly place: number;
  /** Time at which it began to wait, or somewhat earlier. */
  readonly since: number;
}

/**
 * Times of keys that do nothing but wait for their first run, or for the end of
 * their interval: eight bytes for each, by its place. A place is a number from 0
 * that the owner of the keys gives them; neighbours share memory.
 *
 * Waiting places are taken by a cursor, page by page. Due times are found by a
 * sweep of the pages that may have one: setting a time is a comparison.
 */
export class PlaceTimes {
  readonly #pages: Map<number, Page> = new Map();
  /** Pages with waiting places, the one of the cursor first. */
  readonly #round: Page[] = [];
  /** Position of the cursor in its page. */
  #cursor = 0;
  #waiting = 0;
  #delayed = 0;

  /** Number of places that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Number of places with a due time. */
  get delayed(): number {
    return this.#delayed;
  }

  /** Lower bound of the due times; infinite if there are none. */
  get earliest(): number {
    let earliest = Infinity;
    for (const page of this.#pages.values()) {
      earliest = Math.min(earliest, page.earliest);
    }
    return earliest;
  }

  isWaiting(place: number): boolean {
    return this.#waiting > 0 && this.#time(place) === WAITING;
  }

  /** Lets a place wait; its due time is dropped. */
  wait(place: number, now: number): void {
    const page = this.#set(place, WAITING);
    if (page.waiting === 1) page.since = now;
    if (page.isInRound) return;
    page.isInRound = true;
    this.#round.push(page);
  }

  /** Sets the due time of a place, which waits no longer. */
  delay(place: number, due: number): void {
    const page = this.#set(place, due);
    page.earliest = Math.min(page.earliest, due);
  }

  /** Drops the time of a place. */
  clear(place: number): void {
    if (this.#time(place) === NONE) return;
    const page = this.#set(place, NONE);
    if (page.waiting + page.delayed === 0) this.#pages.delete(page.number);
  }

  /** Gives the time of a place to another one, unless that has an earlier one. */
  move(from: number, to: number, now: number): void {
    const time = this.#time(from);
    const known = this.#time(to);
    this.clear(from);
    if (time === WAITING) this.wait(to, now);
    else if (time !== NONE && (known === NONE || time < known)) {
      this.delay(to, time);
    }
  }

  /** Places that wait. */
  *waitingPlaces(): Generator<number, void, undefined> {
    for (const { number, times, waiting } of this.#pages.values()) {
      if (waiting === 0) continue;
      for (let at = 0; at < times.length; at++) {
        if (times[at] === WAITING) yield number * PAGE_LENGTH + at;
      }
    }
  }

  /** Removes the next place that waits; there must be one. */
  take(): TakenPlace {
    for (;;) {
      const page = this.#round[0] as Page;
      const { times, since } = page;
      const at = page.waiting === 0 ? -1 : times.indexOf(WAITING, this.#cursor);
      if (at >= 0) {
        this.#cursor = at + 1;
        const place = page.number * PAGE_LENGTH + at;
        this.clear(place);
        return { place, since };
      }
      this.#cursor = 0;
      this.#round.shift();
      page.isInRound = page.waiting > 0;
      if (page.isInRound) this.#round.push(page);
    }
  }

  /** Removes places that are due, at most so many; returns them. */
  takeDue(now: number, limit: number): readonly number[] {
    const due: number[] = [];
    for (const page of this.#pages.values()) {
      if (page.earliest > now) continue;
      const { times, number } = page;
      page.earliest = Infinity;
      for (let at = 0; at < times.length; at++) {
        const time = times[at] as number;
        if (time <= 0) continue;
        if (time <= now && due.length < limit) {
          due.push(number * PAGE_LENGTH + at);
        } else if (time < page.earliest) page.earliest = time;
      }
      if (due.length === limit) break;
    }
    for (const place of due) this.clear(place);
    return due;
  }

  /** Drops all times. */
  reset(): void {
    this.#pages.clear();
    this.#round.length =
      this.#cursor =
      this.#waiting =
      this.#delayed =
        0;
  }

  #time(place: number): number {
    const page = this.#pages.get(Math.floor(place / PAGE_LENGTH));
    return page?.times[place % PAGE_LENGTH] ?? NONE;
  }

  #set(place: number, time: number): Page {
    const number = Math.floor(place / PAGE_LENGTH);
    let page = this.#pages.get(number);
    if (page === undefined) {
      page = {
        number,
        times: new Float64Array(FIRST_LENGTH),
        waiting: 0,
        delayed: 0,
        earliest: Infinity,
        since: 0,
        isInRound: false,
      };
      this.#pages.set(number, page);
    }
    const at = place % PAGE_LENGTH;
    if (at >= page.times.length) {
      let { length } = page.times;
      while (length <= at) length *= 2;
      const times = new Float64Array(length);
      times.set(page.times);
      page.times = times;
    }
    this.#count(page, page.times[at] as number, -1);
    this.#count(page, time, 1);
    page.times[at] = time;
    return page;
  }

  #count(page: Page, time: number, change: number): void {
    if (time === WAITING) {
      page.waiting += change;
      this.#waiting += change;
    } else if (time !== NONE) {
      page.delayed += change;
      this.#delayed += change;
    }
  }
}

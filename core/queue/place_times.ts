const FIRST_LENGTH = 16;

/** Times of a place that has none, and of one that waits. */
const NONE = Infinity;
const WAITING = -1;

/** Neighbouring places. */
interface Page {
  /** Number of the page: its first place divided by the length of pages. */
  readonly number: number;
  /** Due time of each place, or a mark. */
  times: Float64Array;
  /** Number of places with a due time or a mark. */
  used: number;
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
 * Times of places, eight bytes for each: when it is due, or that it waits for its
 * turn. A place is a number from 0; neighbours share memory.
 *
 * Waiting places are taken by a cursor, page by page. Due times are found by a
 * sweep of the pages that may have one: setting a time is a comparison.
 */
export class PlaceTimes {
  readonly #pageLength: number;
  readonly #pages: Map<number, Page> = new Map();
  /** Pages with waiting places, the one of the cursor first. */
  readonly #round: Page[] = [];
  /** Position of the cursor in its page. */
  #cursor = 0;
  /** Number of places that wait. */
  waiting = 0;
  /** Number of places with a due time. */
  delayed = 0;
  /** Lower bound of the due times; infinite if there are none. */
  earliest: number = Infinity;

  /** @param pageLength Number of places of a page: less is swept, and more kept. */
  constructor(pageLength = 4_096) {
    this.#pageLength = pageLength;
  }

  isWaiting(place: number): boolean {
    return this.waiting > 0 && this.#time(place) === WAITING;
  }

  /** Lets a place wait; its due time is dropped. */
  wait(place: number, now: number): void {
    const page = this.#change(place, WAITING);
    if (page.isInRound) return;
    page.isInRound = true;
    page.since = now;
    this.#round.push(page);
  }

  /** Sets the due time of a place, which waits no longer; infinite if it has none. */
  set(place: number, due: number): void {
    if (due === NONE && this.#time(place) === NONE) return;
    const page = this.#change(place, due);
    page.earliest = Math.min(page.earliest, due);
    this.earliest = Math.min(this.earliest, due);
  }

  /** Gives the time of a place to another one, unless that has an earlier one. */
  move(from: number, to: number, now: number): void {
    const time = this.#time(from);
    const isEarlier = time < this.#time(to);
    this.set(from, NONE);
    if (time === WAITING) this.wait(to, now);
    else if (isEarlier) this.set(to, time);
  }

  /** Places that wait. */
  *waitingPlaces(): Generator<number, void, undefined> {
    for (const { number, times } of this.#round) {
      for (let at = 0; at < times.length; at++) {
        if (times[at] === WAITING) yield number * this.#pageLength + at;
      }
    }
  }

  /** Removes the next place that waits; there must be one. */
  take(): TakenPlace {
    for (;;) {
      const page = this.#round[0] as Page;
      const { number, times, since } = page;
      const at = times.indexOf(WAITING, this.#cursor);
      if (at >= 0) {
        this.#cursor = at + 1;
        const place = number * this.#pageLength + at;
        this.set(place, NONE);
        return { place, since };
      }
      this.#cursor = 0;
      this.#round.shift();
      page.isInRound = times.includes(WAITING);
      if (page.isInRound) this.#round.push(page);
    }
  }

  /** Removes places that are due, at most so many; returns them. */
  takeDue(now: number, limit: number): number[] {
    const due: number[] = [];
    let earliest = Infinity;
    for (const page of this.#pages.values()) {
      if (page.earliest <= now && due.length < limit) {
        const { times, number } = page;
        page.earliest = Infinity;
        for (let at = 0; at < times.length; at++) {
          const time = times[at] as number;
          if (time === WAITING) continue;
          if (time <= now && due.length < limit) {
            due.push(number * this.#pageLength + at);
          } else if (time < page.earliest) page.earliest = time;
        }
      }
      earliest = Math.min(earliest, page.earliest);
    }
    for (const place of due) this.set(place, NONE);
    // The bound of a page may be of a time that was dropped.
    this.earliest = this.delayed === 0 ? NONE : earliest;
    return due;
  }

  #time(place: number): number {
    const page = this.#pages.get(Math.floor(place / this.#pageLength));
    return page?.times[place % this.#pageLength] ?? NONE;
  }

  /** Changes the time of a place; a page without any is dropped. */
  #change(place: number, time: number): Page {
    const number = Math.floor(place / this.#pageLength);
    const at = place % this.#pageLength;
    let page = this.#pages.get(number);
    if (page === undefined) {
      page = {
        number,
        times: new Float64Array(FIRST_LENGTH).fill(NONE),
        used: 0,
        earliest: Infinity,
        since: 0,
        isInRound: false,
      };
      this.#pages.set(number, page);
    }
    let { times } = page;
    if (at >= times.length) {
      let { length } = times;
      while (length <= at) length *= 2;
      times = new Float64Array(length).fill(NONE);
      times.set(page.times);
      page.times = times;
    }
    this.#count(page, times[at] as number, -1);
    this.#count(page, time, 1);
    times[at] = time;
    if (page.used === 0) this.#pages.delete(number);
    if (this.delayed === 0) this.earliest = Infinity;
    return page;
  }

  #count(page: Page, time: number, change: number): void {
    if (time === NONE) return;
    page.used += change;
    if (time === WAITING) this.waiting += change;
    else this.delayed += change;
  }
}

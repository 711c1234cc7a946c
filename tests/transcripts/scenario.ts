import type { WireClient, WireResponse } from "./http_client.ts";
import { valueAt } from "./json_path.ts";
import type { Condition, Outcome, Step, Transcript } from "./transcript.ts";

/** How long a wait lasts unless the step says otherwise, in milliseconds. */
const WAIT = 10_000;
/** Milliseconds that a setup waits for objects of an earlier run. */
const SETUP_WAIT = 120_000;
/** Milliseconds that a watch waits for unexpected events. */
const SETTLE = 60;

/** Step with its outcome. */
export interface StepRun {
  readonly step: Step;
  readonly outcome: Outcome;
}

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

/** Runs the steps of one transcript against a server. */
export class ScenarioRun {
  readonly #client: WireClient;
  /** Raw answers by the id of their step, for `{{step.path}}`. */
  readonly #bodies: Map<string, unknown> = new Map();
  readonly #runs: StepRun[] = [];
  #failedSetup: string | undefined;

  constructor(client: WireClient) {
    this.#client = client;
  }

  /** Runs all steps but the cleanup. @returns The steps with their outcomes. */
  async run(transcript: Transcript): Promise<readonly StepRun[]> {
    for (const step of transcript.steps) {
      if (!step.cleanup) await this.#run(step);
    }
    return this.#runs;
  }

  /** Runs the cleanup steps. */
  async cleanUp(transcript: Transcript): Promise<void> {
    for (const step of transcript.steps) {
      if (step.cleanup) await this.#run(step);
    }
  }

  async #run(step: Step): Promise<void> {
    let outcome: Outcome;
    try {
      if (this.#failedSetup !== undefined && !step.cleanup) {
        throw new Error(`not run, since ${this.#failedSetup} failed`);
      }
      outcome = step.watch !== undefined
        ? await this.#watch(step)
        : step.poll !== undefined
        ? await this.#poll(step)
        : await this.#request(step);
    } catch (error) {
      outcome = { error: String((error as Error).message ?? error) };
    }
    if (outcome.body !== undefined) this.#bodies.set(step.id, outcome.body);
    if (outcome.events) this.#bodies.set(step.id, { events: outcome.events });
    if (step.setup && (outcome.error ?? (outcome.status ?? 0) >= 400)) {
      this.#failedSetup ??= step.id;
    }
    this.#runs.push({ step, outcome });
  }

  async #request(step: Step): Promise<WireResponse> {
    const request = {
      method: step.method ?? "GET",
      path: this.#fill(step.path ?? "", encodeURIComponent),
      headers: this.#substitute(step.headers ?? {}) as Record<string, string>,
      payload: step.rawBody === undefined
        ? step.body === undefined
          ? undefined
          : JSON.stringify(this.#substitute(step.body))
        : this.#fill(step.rawBody, String),
      auth: step.auth,
    };
    const end = Date.now() + SETUP_WAIT;
    let response = await this.#client.send(request);
    while (step.setup && response.status === 409 && Date.now() < end) {
      await sleep(200);
      response = await this.#client.send(request);
    }
    return response;
  }

  async #poll(step: Step): Promise<Outcome> {
    const limit = step.timeoutMs ?? WAIT;
    const end = Date.now() + limit;
    const until = this.#substitute(step.until ?? {}) as Condition;
    const request = {
      method: step.method ?? "GET",
      path: this.#fill(step.poll ?? "", encodeURIComponent),
      headers: step.headers ?? {},
      payload: step.body === undefined
        ? undefined
        : JSON.stringify(this.#substitute(step.body)),
      auth: step.auth,
    };
    for (let pause = 10;; pause = Math.min(pause * 1.5, 200)) {
      const response = await this.#client.send(request);
      if (holds(until, response)) return response;
      if (Date.now() > end) {
        return {
          ...response,
          error: `${JSON.stringify(until)} did not come true in ${limit} ms`,
        };
      }
      await sleep(pause);
    }
  }

  async #watch(step: Step): Promise<Outcome> {
    const { until = {}, bookmarks = false } = step;
    const limit = until.timeoutMs ?? step.timeoutMs ?? WAIT;
    const watch = this.#client.watch({
      method: "GET",
      path: this.#fill(step.watch ?? "", encodeURIComponent),
      headers: this.#substitute(step.headers ?? {}) as Record<string, string>,
      auth: step.auth,
    });
    // Bookmarks come when they like; only the one that ends the initial events
    // has its place.
    const seen = () =>
      watch.events.filter((event) =>
        event.type !== "BOOKMARK" ||
        (bookmarks && endsInitialEvents(event.object))
      );
    try {
      await watch.wait(() => watch.head !== undefined, 3_000);
      const { first, during = [] } = step;
      if (first) await watch.wait(() => seen().length >= first, limit);
      for (const each of during) await this.#run(each);
      const { head } = watch;
      if (head === undefined) return { error: "the watch got no answer" };
      if (head.status !== 200) {
        await watch.wait(() => watch.ended, limit);
        return { ...head, body: watch.body };
      }
      if (until.closed) {
        const closed = await watch.wait(() => watch.ended, limit) ||
          watch.ended;
        return { ...head, events: seen(), closed };
      }
      const wanted = until.events ?? Infinity;
      const enough = await watch.wait(() => seen().length >= wanted, limit);
      if (enough) await sleep(step.settleMs ?? SETTLE);
      const events = seen();
      return enough || until.events === undefined ? { ...head, events } : {
        ...head,
        events,
        error: `only ${events.length} of ${wanted} events in ${limit} ms`,
      };
    } finally {
      watch.close();
    }
  }

  /** Puts values of earlier answers in the place of `{{step.path}}`. */
  #fill(text: string, encode: (value: string) => string): string {
    return text.replaceAll(
      /\{\{([^}]+)\}\}/g,
      (_, reference: string) => encode(String(this.#look(reference))),
    );
  }

  #look(reference: string): unknown {
    const [, id = "", path = ""] = /^([\w-]+)\.?(.*)$/s.exec(
      reference.trim(),
    ) ?? [];
    const value = valueAt(this.#bodies.get(id), path);
    if (value === undefined || value === null) {
      throw new Error(`there is no ${reference}`);
    }
    return value;
  }

  #substitute(value: unknown): unknown {
    if (typeof value === "string") {
      const [, whole] = /^\{\{([^}]+)\}\}$/.exec(value) ?? [];
      return whole === undefined
        ? this.#fill(value, String)
        : this.#look(whole);
    }
    if (Array.isArray(value)) {
      return value.map((item) => this.#substitute(item));
    }
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        this.#substitute(item),
      ]),
    );
  }
}

function endsInitialEvents(object: unknown): boolean {
  return valueAt(
    object,
    'metadata.annotations["k8s.io/initial-events-end"]',
  ) === "true";
}

function holds(until: Condition, { status, body }: WireResponse): boolean {
  if (until.status !== undefined && until.status !== status) return false;
  if (until.path === undefined) return true;
  const value = valueAt(body, until.path);
  if ("equals" in until) {
    return JSON.stringify(value) === JSON.stringify(until.equals);
  }
  if (until.length !== undefined) {
    return (Array.isArray(value) ? value.length : 0) === until.length;
  }
  return (value !== undefined && value !== null) === until.exists;
}

import { readdir, readFile } from "node:fs/promises";
import { type Target, WireClient } from "./http_client.ts";
import { type Difference, Matcher } from "./matcher.ts";
import { project } from "./projection.ts";
import { ScenarioRun, type StepRun } from "./scenario.ts";
import type { Step, Transcript } from "./transcript.ts";

/** Folder of the recordings. */
export const GOLDEN: URL = new URL("./golden/", import.meta.url);

/** All recordings, in the order of their names. */
export async function readTranscripts(): Promise<readonly Transcript[]> {
  const files = (await readdir(GOLDEN)).filter((name) => name.endsWith(".json"))
    .sort();
  return await Promise.all(
    files.map(async (name) =>
      JSON.parse(await readFile(new URL(name, GOLDEN), "utf8"))
    ),
  );
}

/** Unexpected result of a step. */
export interface Finding {
  readonly step: string;
  readonly differences: readonly Difference[];
  /** What the server answered, as it is recorded; undefined without an answer. */
  readonly answer?: unknown;
  /** Whether the step was compared with its `newer` answer. */
  readonly isNewer?: boolean;
}

/** Replays transcripts, a few at a time. */
export class Replay {
  readonly #client: WireClient;
  readonly #runs: Map<string, ScenarioRun> = new Map();
  readonly #results: Map<string, Promise<readonly Finding[]>> = new Map();
  readonly #waiting: (() => void)[] = [];
  #free: number;
  #minor: Promise<number> | undefined;

  /**
   * @param target The server.
   * @param jobs How many scenarios run at a time.
   */
  constructor(target: Target, jobs = 4) {
    this.#client = new WireClient(target);
    this.#free = jobs;
  }

  /** Replays a transcript when a slot is free. @returns Its findings. */
  run(transcript: Transcript): Promise<readonly Finding[]> {
    const { name } = transcript;
    const known = this.#results.get(name);
    if (known) return known;
    const result = this.#turn(async () => {
      const scenario = new ScenarioRun(this.#client);
      this.#runs.set(name, scenario);
      this.#minor ??= minorVersion(this.#client);
      return judge(await scenario.run(transcript), await this.#minor);
    });
    this.#results.set(name, result);
    return result;
  }

  async #turn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  /** Deletes the objects of the transcripts. */
  async cleanUp(transcripts: readonly Transcript[]): Promise<void> {
    for (const transcript of transcripts) {
      await this.#runs.get(transcript.name)?.cleanUp(transcript);
    }
    this.#client.close();
  }
}

async function minorVersion(client: WireClient): Promise<number> {
  const { body } = await client.send({
    method: "GET",
    path: "/version",
    headers: {},
  });
  return parseInt((body as { minor: string }).minor);
}

function judge(runs: readonly StepRun[], minor: number): Finding[] {
  const matcher = new Matcher();
  return runs.filter(({ step }) => !step.cleanup).map(({ step, outcome }) => {
    const { error } = outcome;
    if (error !== undefined) {
      const differences = [{ path: "", expected: "an answer", actual: error }];
      return { step: step.id, differences };
    }
    const { newer } = step;
    const isNewer = newer !== undefined &&
      minor >= Number(newer.since.split(".")[1]);
    const response = (isNewer ? newer : step).response ?? {};
    const actual = project(step, outcome);
    const differences = matcher.compare(response, actual)
      .filter((difference) => !isSoft(step, difference));
    const answer = differences.length === 0
      ? undefined
      : matcher.record(response, actual);
    return { step: step.id, differences, answer, isNewer };
  }).filter(({ differences }) => differences.length > 0);
}

/** Messages of Go's run time, which another server need not have. */
const GO_TEXT =
  /[a-z]\w*\.[A-Z]\w+\{|map\[|\(\*|strconv|json:|scheme "pkg|\/registry\//;

function isSoft(step: Step, { path, expected, actual }: Difference): boolean {
  if (
    path.endsWith("message") && typeof actual === "string" &&
    GO_TEXT.test(String(expected))
  ) return true;
  // Ages in Tables: a slow machine takes a second between two requests.
  if (path.includes(".cells[") && isAge(expected) && isAge(actual)) return true;
  return (step.soft ?? []).some((soft) => {
    const pattern = soft.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
      .replaceAll("\\[\\*\\]", "\\[\\d+\\]");
    return new RegExp(`^\\.${pattern}`).test(path);
  });
}

function isAge(value: unknown): boolean {
  return typeof value === "string" && /^\d{1,2}s$/.test(value);
}

/** A finding for people. */
export function findingText({ step, differences }: Finding): string {
  const short = (value: unknown) => {
    const text = JSON.stringify(value) ?? "nothing";
    return text.length > 300 ? `${text.slice(0, 300)}…` : text;
  };
  return [
    step,
    ...differences.slice(0, 8).map(({ path, expected, actual, why }) =>
      `  ${path || "(step)"}: expected ${short(expected)}, got ${
        short(actual)
      }${why ? ` (${why})` : ""}`
    ),
  ].join("\n");
}

/**
 * The corpus: small operators with one seeded bug each, and correct ones.
 *
 * @module
 */
import { readdir } from "node:fs/promises";
import { silentLogger } from "@coracle/operator/client";
import { replaceHost } from "../../../core/client/host.ts";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import type { CorpusEntry } from "./entry.ts";

/** Operator of the corpus. */
export interface Member {
  /** Folder and file, without extension, such as `buggy/no_cleanup`. */
  readonly name: string;
  /** File. */
  readonly url: URL;
  /** Facts that the file exports. */
  readonly entry: CorpusEntry;
}

/** Reads the whole corpus; nothing is run. */
export async function corpus(): Promise<readonly Member[]> {
  const members: Member[] = [];
  const restoreHost = replaceHost({
    operators: { runs: false, logger: silentLogger, made() {} },
  });
  try {
    for (const folder of ["buggy", "correct"]) {
      const files = await readdir(new URL(folder, import.meta.url));
      for (const file of files.toSorted()) {
        const url = new URL(`${folder}/${file}`, import.meta.url);
        const { entry } = await import(url.href) as { entry: CorpusEntry };
        members.push({ name: `${folder}/${file.slice(0, -3)}`, url, entry });
      }
    }
  } finally {
    restoreHost();
  }
  return members;
}

type Finding = Awaited<ReturnType<typeof checkOperator>>["findings"][number];

/** Result of the check of one operator. */
export interface Verdict {
  readonly name: string;
  readonly isBuggy: boolean;
  /** Finding that is about the seeded bug; undefined if none exists. */
  readonly proof: Finding | undefined;
  /** Whether its plan shows the same once more. */
  readonly isReplayed: boolean;
  readonly findings: readonly Finding[];
  readonly plans: number;
  /** CPU time in milliseconds. */
  readonly cpu: number;
}

/** Checks an operator, a buggy one until its bug is found. */
export async function verdictOf(
  { name, url, entry }: Member,
  { plans, seed = 1 }: { readonly plans: number; readonly seed?: number },
): Promise<Verdict> {
  const { bug, examples } = entry;
  const given = { operator: url, examples, seed };
  let proof: Finding | undefined;
  const { findings, coverage: { cpu }, ...report } = await checkOperator({
    ...given,
    plans,
    enough(finding) {
      if (bug && isAbout(bug, finding)) proof ??= finding;
      return proof !== undefined;
    },
  });
  const again = proof &&
    await checkOperator({ ...given, replay: proof.plan });
  return {
    name,
    isBuggy: bug !== undefined,
    proof,
    isReplayed: again?.findings.some(({ title }) => title === proof?.title) ??
      false,
    findings,
    plans: report.plans,
    cpu,
  };
}

/** Whether a finding is about a seeded bug. */
function isAbout(
  { plans, write }: NonNullable<CorpusEntry["bug"]>,
  { plan, writes }: Finding,
): boolean {
  const [, kind = "none"] = /\/([a-z]+)/.exec(plan) ?? [];
  return plans.includes(kind) && writes.some((one) => one.includes(write));
}

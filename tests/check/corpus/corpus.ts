/**
 * The corpus: small operators with one seeded bug each, and correct ones.
 *
 * @module
 */
import { readdir } from "node:fs/promises";
import {
  development,
  setDevelopment,
} from "../../../core/operator/development.ts";
import { silentLogger } from "../../../core/logger.ts";
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
  const before = development();
  setDevelopment({ runs: false, logger: silentLogger, operatorMade() {} });
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
    setDevelopment(before);
  }
  return members;
}

/** Kind of the plan of a finding, such as `crash`. */
export function planKind({ plan }: { readonly plan: string }): string {
  return /\/([a-z]+)/.exec(plan)?.[1] ?? "none";
}

/** Whether a finding is about a seeded bug. */
export function detected(
  { plans, write }: NonNullable<CorpusEntry["bug"]>,
  finding: { readonly plan: string; readonly writes: readonly string[] },
): boolean {
  return plans.includes(planKind(finding)) &&
    finding.writes.some((one) => one.includes(write));
}

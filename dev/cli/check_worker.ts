/**
 * Program of a worker process of `coracle check`: reads jobs from standard input,
 * one per line, and writes answers.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";
import type {
  CheckSession as Session,
  Job,
} from "../testing/check/check_session.ts";
import type { WorkerAnswer, WorkerSettings } from "./check_workers.ts";
import { keepCompiledModules } from "./compile_cache.ts";

keepCompiledModules();
const { CheckSession } = await import("../testing/check/check_session.ts");
const { ANSWER_MARK } = await import("./check_workers.ts");
const write = process.stdout.write.bind(process.stdout);

let session: Promise<Session> | undefined;
for await (const line of createInterface({ input: process.stdin })) {
  const given: unknown = JSON.parse(line);
  if (session === undefined) {
    session = CheckSession.open(given as WorkerSettings);
    session.catch(() => {}); // Reported with the first job.
    continue;
  }
  const answer = await done(session, given as Job);
  write(`${ANSWER_MARK}${JSON.stringify(answer)}\n`);
}
process.exit();

async function done(
  session: Promise<Session>,
  job: Job,
): Promise<WorkerAnswer> {
  try {
    return { result: await (await session).run(job) };
  } catch (error) {
    const { message, stack } = error as Error;
    return {
      error: message.startsWith("Cannot ") ? message : stack ?? String(error),
    };
  }
}

/**
 * System that the example `stream_job.ts` operates: a small job manager with a
 * REST API like Flink's. It simulates streaming: a running job counts one record
 * per tick. The count is its state, which savepoints and checkpoints keep, so an
 * upgrade that loses state is visible.
 *
 *     PUT    /jobs/ID        starts a job, once: {name, program, parallelism, from}
 *     GET    /jobs/ID        reads its state
 *     PATCH  /jobs/ID        scales it: {parallelism}
 *     POST   /jobs/ID/stop   stops it, with or without a savepoint: {savepoint}
 *     DELETE /jobs/ID        forgets it
 *
 * Programs with `stuck` in their name never get ready, `crash` ones fail, `finite`
 * ones end, and `rigid` ones cannot be scaled.
 *
 *     node examples/job_manager.ts 8081 state.json
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";

/** Job in the format of the API. */
export interface Job {
  readonly id: string;
  readonly name: string;
  readonly program: string;
  parallelism: number;
  state:
    | "starting"
    | "running"
    | "stopping"
    | "canceled"
    | "finished"
    | "failed";
  /** Number of counted records, including those before a restart. */
  records: number;
  startedAt: number;
  endedAt?: number;
  /** Path of the state that it started with. */
  readonly from?: string;
  /** Path of the last checkpoint. */
  checkpoint?: string;
  /** Path of the savepoint that was taken when the job was stopped. */
  savepoint?: string;
  failures: { at: number; text: string }[];
}

/** Accepted requests; a real server would check them more strictly. */
interface JobRequest {
  readonly name: string;
  readonly program: string;
  readonly parallelism: number;
  readonly from?: string;
  readonly savepoint?: boolean;
}

const OVER: readonly Job["state"][] = ["canceled", "finished", "failed"];

/** Runs jobs and answers requests. */
export class JobManager {
  readonly #jobs = new Map<string, Job>();
  readonly #withSavepoint = new Set<string>();
  /** Saved states by path. A file keeps them over restarts. */
  readonly #states: Map<string, number>;
  readonly #file: string | undefined;
  readonly #now: () => number;

  constructor(options: { file?: string; now?: () => number } = {}) {
    this.#file = options.file;
    this.#now = options.now ?? Date.now;
    this.#states = this.#file !== undefined && existsSync(this.#file)
      ? new Map(JSON.parse(readFileSync(this.#file, "utf8")))
      : new Map();
  }

  /** Jobs that were started and not deleted. */
  get jobs(): readonly Job[] {
    return [...this.#jobs.values()];
  }

  /** Advances all jobs: they start, count, checkpoint, fail, end and stop. */
  tick(): void {
    for (const job of this.#jobs.values()) this.#tickJob(job);
    if (this.#file === undefined) return;
    writeFileSync(`${this.#file}.new`, JSON.stringify([...this.#states]));
    renameSync(`${this.#file}.new`, this.#file);
  }

  /** Answers one request. */
  async handle(request: Request): Promise<Response> {
    const [, root, id = "", action] = new URL(request.url).pathname.split("/");
    if (root !== "jobs") return text(404, "No such page");
    const job = this.#jobs.get(id);
    const body = request.method === "PUT" || request.method === "PATCH" ||
        request.method === "POST"
      ? await request.json() as JobRequest
      : undefined;
    if (request.method === "PUT") return this.#start(id, body!);
    if (job === undefined) return text(404, `No job ${id}`);
    if (request.method === "POST" && action === "stop") {
      this.#stop(job, body!.savepoint ?? false);
      return Response.json(job, { status: 202 });
    }
    if (request.method === "PATCH") return this.#scale(job, body!.parallelism);
    if (request.method === "DELETE") this.#jobs.delete(id);
    return Response.json(job);
  }

  #start(id: string, { name, program, parallelism, from }: JobRequest) {
    const same = this.#jobs.get(id);
    if (same !== undefined) return Response.json(same);
    const rival = this.jobs.find((job) =>
      job.name === name && !OVER.includes(job.state)
    );
    if (rival) return text(409, `${name} runs already, as job ${rival.id}`);
    const records = from === undefined ? 0 : this.#states.get(from);
    if (records === undefined) return text(422, `There is no state at ${from}`);
    const job: Job = {
      id,
      name,
      program,
      parallelism,
      state: "starting",
      records,
      startedAt: this.#now(),
      failures: [],
      ...(from !== undefined && { from, checkpoint: from }),
    };
    this.#jobs.set(id, job);
    return Response.json(job, { status: 201 });
  }

  #scale(job: Job, parallelism: number) {
    if (job.program.includes("rigid") || job.state !== "running") {
      return text(409, `Job ${job.id} cannot be scaled`);
    }
    job.parallelism = parallelism;
    return Response.json(job);
  }

  #stop(job: Job, savepoint: boolean): void {
    if (OVER.includes(job.state) || job.state === "stopping") return;
    if (savepoint) this.#withSavepoint.add(job.id);
    job.state = "stopping";
  }

  #tickJob(job: Job): void {
    if (job.state === "stopping") {
      this.#end(job, "canceled");
      if (!this.#withSavepoint.delete(job.id)) return;
      job.savepoint = `savepoints/${job.id}`;
      this.#states.set(job.savepoint, job.records);
    } else if (job.state === "starting") {
      if (!job.program.includes("stuck")) job.state = "running";
    } else if (job.state === "running") {
      job.records++;
      job.checkpoint = `checkpoints/${job.id}`;
      this.#states.set(job.checkpoint, job.records);
      if (job.program.includes("finite")) this.#end(job, "finished");
      if (job.program.includes("crash")) {
        const at = this.#now();
        job.failures.push({ at, text: `Record ${job.records} is rubbish` });
        this.#end(job, "failed");
      }
    }
  }

  #end(job: Job, state: "canceled" | "finished" | "failed"): void {
    job.state = state;
    job.endedAt = this.#now();
  }
}

function text(status: number, message: string): Response {
  return Response.json({ message }, { status });
}

/** Serves a job manager on a port of this machine until a signal ends it. */
function serve(manager: JobManager, port: number): void {
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = new TextDecoder().decode(Buffer.concat(chunks));
    const answer = await manager.handle(
      new Request(`http://127.0.0.1${incoming.url}`, {
        method: incoming.method ?? "GET",
        ...(body !== "" && { body }),
      }),
    ).catch((error) => text(400, String(error)));
    outgoing.writeHead(answer.status, { "content-type": "application/json" });
    outgoing.end(await answer.text());
  });
  const timer = setInterval(() => manager.tick(), 100);
  server.listen(port, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`Job manager at http://127.0.0.1:${port}\n`);
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      clearInterval(timer);
      server.close();
      server.closeAllConnections();
    });
  }
}

if (import.meta.main) {
  const [port = "8081", file] = process.argv.slice(2);
  serve(new JobManager(file === undefined ? {} : { file }), Number(port));
}

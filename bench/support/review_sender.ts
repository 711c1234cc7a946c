/**
 * Sends admission reviews over TLS from a thread of its own, at a rate, as an API
 * server does: on connections that stay open, each as soon as it is due.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { Agent, request } from "node:https";
import { parentPort, workerData } from "node:worker_threads";

/** What is sent, and where. */
export interface SentReviews {
  readonly port: number;
  readonly path: string;
  readonly certificateAuthority: string;
  readonly body: string;
  /** Requests in a second. */
  readonly rate: number;
  readonly seconds: number;
  /** Seconds before the measurement. */
  readonly warmUp: number;
}

/** Time of each request in milliseconds, from when it was due until its answer. */
export type ReviewTimes = readonly number[];

/** Connections that an API server keeps to a webhook. */
const CONNECTIONS = 25;

async function send(
  { port, path, certificateAuthority, body, ...load }: SentReviews,
): Promise<ReviewTimes> {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: CONNECTIONS,
    ca: certificateAuthority,
  });
  const bytes = Buffer.from(body);
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const sent = request({
        agent,
        host: "127.0.0.1",
        servername: "localhost",
        port,
        path: `${path}?timeout=5s`,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "content-length": bytes.length,
        },
      }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part) => text += part);
        response.on("end", () => {
          if (/"allowed":true/.test(text)) resolve();
          else reject(new Error(`Cannot count a run: ${text.slice(0, 200)}`));
        });
      });
      sent.on("error", reject).end(bytes);
    });
  const times: number[] = [];
  const pending: Promise<void>[] = [];
  const start = performance.now();
  const total = load.rate * (load.warmUp + load.seconds);
  const isCounted = (at: number) => at >= load.rate * load.warmUp;
  for (let at = 0; at < total;) {
    const due = start + at * 1_000 / load.rate;
    const left = due - performance.now();
    if (left > 0) {
      await new Promise((resolve) => setTimeout(resolve, left));
      continue;
    }
    const counts = isCounted(at++);
    pending.push(
      ask().then(() => {
        if (counts) times.push(performance.now() - due);
      }),
    );
  }
  await Promise.all(pending);
  agent.destroy();
  return times;
}

send(workerData as SentReviews).then((times) => parentPort?.postMessage(times));

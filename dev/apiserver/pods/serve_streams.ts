/**
 * Server side of the channel protocol (`v4.channel.k8s.io`, `v5.channel.k8s.io`)
 * of `exec`, `attach` and `portForward`.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import {
  ChunkQueue,
  errorMessage,
  isJsonObject,
} from "@coracle/operator/internal";
import type { MessageStream } from "../http/message_stream.ts";
import type { HookCall, PodCall, PodProcess } from "./pod_hooks.ts";

const PROCESS = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4 };
const PORT = { data: 0, error: 1 };
/** First byte of a message that closes a channel; the second byte is the channel. */
const CLOSE = 255;

/** Serves the stream of a process until the process ends or the caller disconnects. */
export async function serveProcess(
  stream: MessageStream,
  call: Omit<PodCall, "signal"> & Pick<PodProcess, "command" | "tty">,
  run: (process: PodProcess) => Promise<number>,
): Promise<void> {
  const { stdin, resize } = PROCESS;
  const channels = receive(stream, [stdin, resize]);
  let status: object;
  try {
    const code = await run({
      ...call,
      signal: channels.signal,
      stdin: channels.queue(stdin),
      sizes: sizesIn(channels.queue(resize)),
      write: (output) => sendOn(stream, PROCESS.stdout, bytesOf(output)),
      writeError: (output) => sendOn(stream, PROCESS.stderr, bytesOf(output)),
    });
    status = code === 0 ? SUCCESS : exitStatus(code);
  } catch (error) {
    status = failure(error);
  }
  await finish(stream, PROCESS.status, bytesOf(JSON.stringify(status)));
}

/** Serves the stream of a connection to a port. */
export async function servePort(
  stream: MessageStream,
  call: Omit<PodCall, "signal"> & { readonly port: number },
  serve: (port: HookCall<"portForward">) => Promise<void>,
): Promise<void> {
  const channels = receive(stream, [PORT.data]);
  // Both channels begin with the port number, little-endian.
  const number = Uint8Array.of(call.port & 0xff, call.port >> 8);
  let refusal = "";
  try {
    await sendOn(stream, PORT.data, number);
    await sendOn(stream, PORT.error, number);
    await serve({
      ...call,
      signal: channels.signal,
      data: channels.queue(PORT.data),
      write: (data) => sendOn(stream, PORT.data, bytesOf(data)),
    });
  } catch (error) {
    refusal = errorMessage(error);
  }
  await finish(stream, PORT.error, bytesOf(refusal));
}

/** Incoming messages of a stream by channel. */
interface Channels {
  /** Signal that is aborted when the stream has ended. */
  readonly signal: AbortSignal;
  queue(channel: number): ChunkQueue;
}

function receive(stream: MessageStream, known: readonly number[]): Channels {
  const left = new AbortController();
  const nothing = { pause() {}, resume() {}, leave() {} };
  const queues = new Map(
    known.map((channel) => [channel, new ChunkQueue(nothing)]),
  );
  const pump = async () => {
    try {
      for await (const message of stream.messages) {
        const [channel = CLOSE, closed = CLOSE] = message;
        if (channel === CLOSE) queues.get(closed)?.end();
        else queues.get(channel)?.push(message.subarray(1));
      }
    } catch {
      // A failed stream has ended as well.
    }
    for (const queue of queues.values()) queue.end();
    left.abort(new Error("Cannot continue: the caller has disconnected"));
  };
  void pump();
  return {
    signal: left.signal,
    queue: (channel) => queues.get(channel) as ChunkQueue,
  };
}

/** Sends a last message, unless the caller has disconnected, and closes the stream. */
async function finish(
  stream: MessageStream,
  channel: number,
  last: Uint8Array,
): Promise<void> {
  if (last.length > 0) await sendOn(stream, channel, last).catch(() => {});
  await stream.close();
}

async function sendOn(
  stream: MessageStream,
  channel: number,
  bytes: Uint8Array,
): Promise<void> {
  await stream.send(Buffer.concat([Uint8Array.of(channel), bytes]));
}

async function* sizesIn(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ readonly width: number; readonly height: number }> {
  for await (const chunk of chunks) {
    const size: unknown = JSON.parse(new TextDecoder().decode(chunk));
    if (!isJsonObject(size)) continue;
    yield { width: Number(size.Width), height: Number(size.Height) };
  }
}

const SUCCESS = { metadata: {}, status: "Success" };

function exitStatus(code: number): object {
  return {
    metadata: {},
    status: "Failure",
    message: `command terminated with non-zero exit code: exit status ${code}`,
    reason: "NonZeroExitCode",
    details: { causes: [{ reason: "ExitCode", message: String(code) }] },
  };
}

function failure(error: unknown): object {
  const message = errorMessage(error);
  return {
    metadata: {},
    status: "Failure",
    message: `Internal error occurred: ${message}`,
    reason: "InternalError",
    details: { causes: [{ message }] },
    code: 500,
  };
}

function bytesOf(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data;
}

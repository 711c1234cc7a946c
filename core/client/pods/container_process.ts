import { isJsonObject } from "../../patch/json_value.ts";
import { checkedStatus, statusError } from "../response.ts";
import { ChannelStream } from "./channel_stream.ts";
import { textOf } from "../transport/chunk_queue.ts";
import type { StreamConnection } from "../transport/transport.ts";

/** Channel numbers of exec and attach. */
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4 };

/**
 * Process in a container, from `client.exec` or `client.attach`.
 *
 * Standard output and standard error share a connection: while one of them is not
 * read, the other waits as well. Read both, or request only one.
 */
export class ContainerProcess {
  /** Standard output. */
  readonly stdout: AsyncIterable<Uint8Array>;
  /** Standard error. */
  readonly stderr: AsyncIterable<Uint8Array>;
  /**
   * Exit code. Rejects if the connection fails or the command could not be run.
   */
  readonly exit: Promise<number>;
  readonly #stream: ChannelStream;

  /**
   * Creates a process; use `client.exec` or `client.attach` instead.
   *
   * @param connection The WebSocket.
   * @param action Description that follows "Cannot" in errors.
   */
  constructor(connection: StreamConnection, action: string) {
    const { status, stderr, stdout } = CHANNEL;
    const stream = new ChannelStream(connection, [stdout, stderr, status]);
    this.#stream = stream;
    this.stdout = stream.channel(stdout);
    this.stderr = stream.channel(stderr);
    this.exit = exitCode(stream.channel(status), action);
    this.exit.catch(() => {}); // Only reported to callers that await it.
  }

  /** Writes to standard input; resolves when the socket has accepted the data. */
  async write(input: Uint8Array | string): Promise<void> {
    await this.#stream.send(CHANNEL.stdin, encoded(input));
  }

  /**
   * Closes standard input.
   *
   * @throws {Error} If the server does not support it (before Kubernetes 1.29).
   */
  async end(): Promise<void> {
    await this.#stream.end(CHANNEL.stdin);
  }

  /** Sets the size of the terminal, in characters. */
  async resize(size: { width: number; height: number }): Promise<void> {
    const { width, height } = size;
    const text = JSON.stringify({ Width: width, Height: height });
    await this.#stream.send(CHANNEL.resize, encoded(text));
  }

  /**
   * Waits for the end of the process and returns its complete output, which must
   * fit into memory.
   */
  async output(): Promise<{
    /** Exit code. */
    readonly code: number;
    /** Standard output, decoded as UTF-8. */
    readonly stdout: string;
    /** Standard error, decoded as UTF-8. */
    readonly stderr: string;
  }> {
    const [code, stdout, stderr] = await Promise.all([
      this.exit,
      textOf(this.stdout),
      textOf(this.stderr),
    ]);
    return { code, stdout, stderr };
  }

  /** Disconnects; the container runtime ends a process started by exec. */
  async close(): Promise<void> {
    await this.#stream.close();
  }
}

function encoded(input: Uint8Array | string): Uint8Array {
  return typeof input === "string" ? new TextEncoder().encode(input) : input;
}

/** Reads the exit code from the Status that the server sends at the end. */
async function exitCode(
  channel: AsyncIterable<Uint8Array>,
  action: string,
): Promise<number> {
  const text = await textOf(channel);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(
      `Cannot ${action}: the stream must end with a Status: received ${
        text === "" ? "nothing" : JSON.stringify(text.slice(0, 200))
      }`,
    );
  }
  if (isJsonObject(value) && value["status"] === "Success") return 0;
  const status = checkedStatus(value);
  const cause = status.details?.causes?.find(({ reason }) =>
    reason === "ExitCode"
  );
  const code = Number(cause?.message ?? NaN);
  if (status.reason === "NonZeroExitCode" && Number.isInteger(code)) {
    return code;
  }
  throw statusError(action, status);
}

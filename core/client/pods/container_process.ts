import type { Status } from "../../api/api_error.ts";
import { ChannelStream } from "./channel_stream.ts";
import { statusError } from "../response.ts";
import { textOf } from "../transport/chunk_queue.ts";
import type { StreamConnection } from "../transport/transport.ts";

/** The channels of exec and attach. */
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4 };

/** What a program wrote until it ended. */
export interface ProcessOutput {
  /** Its exit code. */
  readonly code: number;
  /** What it wrote to its output. */
  readonly stdout: string;
  /** What it wrote to its error output. */
  readonly stderr: string;
}

/**
 * A program in a container, started by `client.exec` or met by `client.attach`.
 *
 * Output and error output come over one line: while one of them is not read,
 * the other waits as well. Read both, or ask for one alone.
 */
export class ContainerProcess {
  /** What the program writes to its output. */
  readonly stdout: AsyncIterable<Uint8Array>;
  /** What the program writes to its error output. */
  readonly stderr: AsyncIterable<Uint8Array>;
  /**
   * The exit code. Fails if the line breaks, or if the program could not run.
   */
  readonly exit: Promise<number>;
  readonly #stream: ChannelStream;

  /**
   * Usually had from a client.
   *
   * @param connection The WebSocket.
   * @param action What it is for, to read after "Cannot".
   */
  constructor(connection: StreamConnection, action: string) {
    const { status, stderr, stdout } = CHANNEL;
    const stream = new ChannelStream(connection, [stdout, stderr, status]);
    this.#stream = stream;
    this.stdout = stream.channel(stdout);
    this.stderr = stream.channel(stderr);
    this.exit = exitCode(stream.channel(status), action);
    this.exit.catch(() => {}); // Whoever asks is told.
  }

  /** Sends to the program's input; resolves when the socket took it. */
  async write(input: Uint8Array | string): Promise<void> {
    await this.#stream.send(CHANNEL.stdin, encoded(input));
  }

  /**
   * Says that the input is at its end.
   *
   * @throws {Error} If the server is too old to understand it.
   */
  async end(): Promise<void> {
    await this.#stream.end(CHANNEL.stdin);
  }

  /** Tells the size of the terminal, in characters. */
  async resize(size: { width: number; height: number }): Promise<void> {
    const { width, height } = size;
    const text = JSON.stringify({ Width: width, Height: height });
    await this.#stream.send(CHANNEL.resize, encoded(text));
  }

  /**
   * Waits for the end and gives everything that the program wrote. It must fit
   * into memory.
   */
  async output(): Promise<ProcessOutput> {
    const [code, stdout, stderr] = await Promise.all([
      this.exit,
      textOf(this.stdout),
      textOf(this.stderr),
    ]);
    return { code, stdout, stderr };
  }

  /** Leaves the program; an exec'd one is ended by the container runtime. */
  async close(): Promise<void> {
    await this.#stream.close();
  }
}

function encoded(input: Uint8Array | string): Uint8Array {
  return typeof input === "string" ? new TextEncoder().encode(input) : input;
}

/** Reads the Status that ends a program's life. */
async function exitCode(
  channel: AsyncIterable<Uint8Array>,
  action: string,
): Promise<number> {
  const text = await textOf(channel);
  let status: Partial<Status>;
  try {
    status = JSON.parse(text);
  } catch {
    throw new Error(
      `Cannot ${action}: the stream must end with a Status: received ${
        text === "" ? "nothing" : JSON.stringify(text.slice(0, 200))
      }`,
    );
  }
  if (status.status === "Success") return 0;
  const cause = status.details?.causes?.find(({ reason }) =>
    reason === "ExitCode"
  );
  if (status.reason === "NonZeroExitCode" && cause !== undefined) {
    return Number(cause.message);
  }
  throw statusError(action, status);
}

import { Buffer } from "node:buffer";
import { isIPv4, isIPv6, type Socket } from "node:net";

const VERSION = 5;
const METHOD = { open: 0, password: 2 };
const CONNECT = 1;
const ADDRESS = { ipv4: 1, name: 3, ipv6: 4 };

const REPLIES: Readonly<Record<number, string>> = {
  1: "general failure",
  2: "not allowed",
  3: "network unreachable",
  4: "host unreachable",
  5: "connection refused",
  6: "time to live expired",
  7: "command not supported",
  8: "address type not supported",
};

/** Target of {@linkcode socks5Connect}. */
export interface Socks5Target {
  /** Host; the proxy resolves names. */
  readonly host: string;
  /** Port of the host. */
  readonly port: number;
  /** User name, if the proxy requires authentication. */
  readonly username?: string | undefined;
  /** Password of the user. */
  readonly password?: string | undefined;
}

/**
 * Requests a connection to a host from the SOCKS5 proxy at the other end of a
 * socket (RFC 1928; with a password, RFC 1929).
 *
 * @throws {Error} If the proxy refuses.
 */
export async function socks5Connect(
  socket: Socket,
  target: Socks5Target,
): Promise<void> {
  const { username = "", password = "" } = target;
  const method = username === "" ? METHOD.open : METHOD.password;
  socket.write(Uint8Array.of(VERSION, 1, method));
  const [version, chosen] = await read(socket, 2);
  if (version !== VERSION || chosen !== method) fail("another method");
  if (method === METHOD.password) {
    socket.write(Buffer.concat([
      Buffer.of(1),
      counted(username),
      counted(password),
    ]));
    const [, refused] = await read(socket, 2);
    if (refused !== 0) fail("a refusal of user and password");
  }
  const port = Buffer.alloc(2);
  port.writeUInt16BE(target.port);
  socket.write(Buffer.concat([
    Buffer.of(VERSION, CONNECT, 0),
    addressOf(target.host),
    port,
  ]));
  const [, reply = 1, , type] = await read(socket, 4);
  if (reply !== 0) fail(REPLIES[reply] ?? `reply ${reply}`);
  await read(socket, await addressLength(socket, type) + 2);
}

function addressOf(host: string): Buffer {
  if (isIPv4(host)) {
    return Buffer.of(ADDRESS.ipv4, ...host.split(".").map(Number));
  }
  if (isIPv6(host)) {
    return Buffer.concat([Buffer.of(ADDRESS.ipv6), ipv6Bytes(host)]);
  }
  return Buffer.concat([Buffer.of(ADDRESS.name), counted(host)]);
}

/** Encodes an address from a URL, which consists of hexadecimal groups. */
function ipv6Bytes(host: string): Buffer {
  const [head = [], tail = []] = host.split("::").map((part) =>
    part.split(":").filter((group) => group !== "")
  );
  const left = Array<string>(8 - head.length - tail.length).fill("0");
  const bytes = Buffer.alloc(16);
  for (const [index, group] of [...head, ...left, ...tail].entries()) {
    bytes.writeUInt16BE(Number.parseInt(group, 16), 2 * index);
  }
  return bytes;
}

async function addressLength(
  socket: Socket,
  type: number | undefined,
): Promise<number> {
  if (type === ADDRESS.ipv4) return 4;
  if (type === ADDRESS.ipv6) return 16;
  const [length = 0] = await read(socket, 1);
  return length;
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.byteLength > 255) fail(`a text of ${bytes.byteLength} bytes`);
  return Buffer.concat([Buffer.of(bytes.byteLength), bytes]);
}

/** Reads exactly `length` bytes; leaves further bytes in the socket. */
function read(socket: Socket, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done = (settle: () => void) => {
      socket.off("readable", look);
      socket.off("end", onEnd);
      socket.off("error", onError);
      settle();
    };
    const look = () => {
      const bytes: Buffer | null = socket.read(length);
      if (bytes !== null) done(() => resolve(bytes));
    };
    const onError = (error: Error) => done(() => reject(error));
    const onEnd = () =>
      onError(new Error("Cannot connect: the proxy closed the connection"));
    socket.on("readable", look);
    socket.on("end", onEnd);
    socket.on("error", onError);
    look();
  });
}

function fail(received: string): never {
  throw new Error(
    `Cannot connect: the SOCKS5 proxy refused: received ${received}`,
  );
}

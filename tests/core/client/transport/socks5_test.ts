import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type AddressInfo, connect, createServer, Socket } from "node:net";
import { test } from "node:test";
import {
  socks5Connect,
  type Socks5Target,
} from "../../../../core/client/transport/socks5.ts";
import { inTime } from "../../../support/in_time.ts";

const ACCEPTED = [5, 0, 0, 1, 10, 0, 0, 1, 0, 80];

/** Number of listeners of a new socket. */
function baseline(event: string): number {
  return new Socket().listenerCount(event);
}

/**
 * Connects by a proxy that answers each message with the next answer.
 *
 * @returns What the proxy was told, and what came through it afterwards.
 */
async function connected(
  target: Partial<Socks5Target>,
  answers: readonly (readonly number[])[],
): Promise<{ readonly told: number[][]; readonly rest: string }> {
  const told: number[][] = [];
  const proxy = createServer((client: Socket) => {
    client.on("error", () => {});
    client.on("data", (message: Buffer) => {
      const answer = answers[told.length];
      told.push([...message]);
      if (answer === undefined) client.end();
      else client.write(Buffer.from(answer));
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1");
  try {
    await new Promise((resolve) => socket.once("connect", resolve));
    await inTime(
      "its end",
      socks5Connect(socket, { host: "api", port: 6443, ...target }),
    );
    const events = ["readable", "end", "error"];
    assert.deepEqual(
      events.filter((event) => socket.listenerCount(event) > baseline(event)),
      [],
      "a listener is left",
    );
    let rest = "";
    socket.setEncoding("utf8").end();
    for await (const text of socket) rest += text;
    return { told, rest };
  } finally {
    socket.destroy();
    await new Promise((resolve) => proxy.close(resolve));
  }
}

test("socks5Connect requests a host by name, IPv4 or IPv6 address", async () => {
  const asked: [string, number[]][] = [
    ["api", [3, 3, ...Buffer.from("api")]],
    ["10.1.2.3", [1, 10, 1, 2, 3]],
    ["fd00::1:2", [4, 0xfd, ...Array(12).fill(0), 1, 0, 2]],
    ["::", [4, ...Array(16).fill(0)]],
    ["1:2:3:4:5:6:7:abcd", [
      4,
      0,
      1,
      0,
      2,
      0,
      3,
      0,
      4,
      0,
      5,
      0,
      6,
      0,
      7,
      0xab,
      0xcd,
    ]],
  ];

  for (const [host, address] of asked) {
    const { told } = await connected({ host }, [[5, 0], ACCEPTED]);
    assert.deepEqual(told, [
      [5, 1, 0],
      [5, 1, 0, ...address, 6443 >> 8, 6443 & 0xff],
    ], host);
  }
});

test("socks5Connect authenticates with user and password", async () => {
  const user = { username: "jane", password: "pässword" };
  const { told } = await connected(user, [[5, 2], [1, 0], ACCEPTED]);
  assert.deepEqual(told.slice(0, 2), [
    [5, 1, 2],
    [1, 4, ...Buffer.from("jane"), 9, ...Buffer.from("pässword")],
  ]);
});

test("socks5Connect leaves the bytes after the reply unread", async () => {
  for (
    const bound of [
      [1, 10, 0, 0, 1],
      [3, 3, ...Buffer.from("pod")],
      [4, ...Array(16).fill(1)],
    ]
  ) {
    const { rest } = await connected({}, [
      [5, 0],
      [5, 0, 0, ...bound, 0, 80, ...Buffer.from("hello")],
    ]);
    assert.equal(rest, "hello");
  }
});

test("socks5Connect reports the refusal of the proxy", async () => {
  const user = { username: "jane", password: "secret" };
  const cases: [Partial<Socks5Target>, number[][], RegExp][] = [
    [{}, [[5, 0xff]], /received another method$/],
    [{}, [[4, 0]], /received another method$/],
    [user, [[5, 0]], /received another method$/],
    [user, [[5, 2], [1, 1]], /received a refusal of user and password$/],
    [{}, [[5, 0], [5, 5, 0, 1, 0, 0, 0, 0, 0, 0]], /connection refused$/],
    [{}, [[5, 0], [5, 1, 0, 1, 0, 0, 0, 0, 0, 0]], /received general failure$/],
    [{}, [[5, 0], [5, 99, 0, 1, 0, 0, 0, 0, 0, 0]], /received reply 99$/],
    [{}, [[5, 0]], /^Error: Cannot connect: the proxy closed the connection$/],
    [
      { ...user, username: "é".repeat(128) },
      [[5, 2]],
      /received a text of 256 bytes$/,
    ],
  ];
  for (const [target, answers, expected] of cases) {
    await assert.rejects(connected(target, answers), (error: unknown) => {
      assert.match(String(error), expected);
      assert.doesNotMatch(String(error), /secret/);
      return true;
    });
  }
});

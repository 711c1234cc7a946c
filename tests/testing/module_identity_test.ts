import assert from "node:assert/strict";
import { test } from "node:test";
import * as named from "@coracle/operator";
import * as internal from "@coracle/operator/internal";
import { ApiServer, ApiServer as ServerByPath } from "@coracle/dev/apiserver";
import { VirtualClock, VirtualClock as ClockByPath } from "@coracle/dev";
import { Client, Operator } from "@coracle/operator";
import { host } from "../../core/client/host.ts";

test("Modules are the same by their paths and by the names of the packages", async () => {
  assert.equal(named.Client, Client);
  assert.equal(named.Operator, Operator);
  assert.equal(internal.host, host);
  assert.equal(ApiServer, ServerByPath);
  assert.equal(VirtualClock, ClockByPath);
  const server = await ApiServer.start({ port: false });
  assert.ok(server.client instanceof Client);
  await server.stop();
});

import assert from "node:assert/strict";
import { test } from "node:test";
import * as named from "@coracle/operator";
import * as internal from "@coracle/operator/internal";
import { ApiServer } from "@coracle/dev/apiserver";
import { VirtualClock } from "@coracle/dev";
import { Client } from "../../core/client/client.ts";
import { host } from "../../core/client/host.ts";
import { ApiServer as ServerByPath } from "../../dev/apiserver/server.ts";
import { VirtualClock as ClockByPath } from "../../dev/testing/virtual_clock.ts";
import { Operator } from "../../core/operator/operator.ts";

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

import { ConfigMap } from "@coracle/operator/kinds";
import {
  byLabel,
  byOwner,
  cachingInboundSource,
  perResourcePollingSource,
  pollingSource,
  timerSource,
  watch,
  webhookSource,
  websocketSource,
} from "@coracle/operator/sources";
import { testRefusals } from "../support/refusals.ts";

const fetch = () => [];
const primaries = () => [];

testRefusals([
  {
    what: "watch()",
    make: (options) => watch(ConfigMap, options),
    good: { labelSelector: "app=web" },
    optional: true,
    bad: {
      shared: ["yes", "true or false"],
      labelSelector: [5, "a string, an object"],
      startPriority: ["first", "one of loader, default"],
      filters: [5, "an object"],
      references: ["x", "a function"],
      mapper: [() => [], "byFunction(): received a function"],
    },
  },
  {
    what: "cachingInboundSource()",
    make: cachingInboundSource,
    good: { name: "orders" },
    bad: { name: ["", "not empty"], fetch: [5, "a function"] },
  },
  {
    what: "pollingSource()",
    make: pollingSource,
    good: { name: "orders", fetch },
    bad: {
      name: [undefined, "received nothing"],
      fetch: [undefined, "a function: received nothing"],
      interval: ["soon", 'received "soon"'],
      timeout: [-1, "received -1"],
    },
  },
  {
    what: "perResourcePollingSource()",
    make: perResourcePollingSource,
    good: { name: "orders", fetch },
    bad: {
      fetch: [5, "a function"],
      interval: ["soon", 'received "soon"'],
      accepts: [true, "a function"],
    },
  },
  {
    what: "Filters of a source",
    make: (filters) =>
      pollingSource({ name: "orders", fetch: () => new Map(), filters }),
    good: {},
    optional: true,
    bad: { add: [5, "a function"], generic: ["x", "a function"] },
  },
  {
    what: "A timer",
    make: (when) => timerSource("daily").schedule("default/web", when),
    good: { after: "1s" },
    bad: { after: ["soon", 'received "soon"'], every: [NaN, "received NaN"] },
  },
  {
    what: "webhookSource()",
    make: webhookSource,
    good: { name: "hook", check: "none", primaries },
    bad: {
      check: [
        { secret: "x" },
        '{ hmac: { secret } }, { bearer: { token } } or "none"',
      ],
      primaries: [undefined, "a function"],
      port: [70_000, "0 to 65535: received 70000"],
      path: ["hook", 'begin with "/"'],
    },
  },
  {
    what: "The HMAC of a webhook",
    make: (hmac) => webhookSource({ name: "hook", check: { hmac }, primaries }),
    good: { secret: "x" },
    bad: {
      secret: [5, /must be a string.*: received a number$/],
      algorithm: ["md5", "one of sha256, sha384, sha512"],
    },
  },
  {
    what: "websocketSource()",
    make: websocketSource,
    good: { name: "socket", url: "wss://example.com", primaries },
    bad: {
      url: [undefined, "a string: received nothing"],
      headers: ["Authorization: s3cret", "an object: received a string"],
      protocols: ["a", "an array of strings"],
    },
  },
  {
    what: "byLabel()",
    make: (options) => byLabel("app", options),
    good: { namespace: "team" },
    optional: true,
    bad: { namespace: [5, "a string"] },
  },
  {
    what: "byOwner()",
    make: byOwner,
    good: { controllerOnly: true },
    optional: true,
    bad: { controllerOnly: ["yes", "true or false"] },
  },
]);

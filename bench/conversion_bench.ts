import { z } from "zod";
import type { UntypedObject } from "@coracle/operator/client";
import {
  type ConversionAnswer,
  conversionHandler,
} from "../core/conversion/conversion_review.ts";
import { defineKind } from "../core/crd/define_kind.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { cpuTime, peakRss } from "./support/sampling.ts";

/** Objects of a list, in one review. */
const OBJECTS = 500;
/** Reviews that come at the same time. */
const AT_ONCE = 10;
const WARM_REVIEWS = 20;
const REVIEWS = 100;

const Store = defineKind({
  group: "bench.coracle.dev",
  version: "v1",
  kind: "Store",
  spec: z.object({
    min: z.int(),
    max: z.int(),
    shards: z.array(z.object({ name: z.string(), bytes: z.int() })),
  }),
  versions: [{
    name: "v1beta1",
    spec: z.object({ size: z.int(), shards: z.array(z.string()) }),
    up: ({ spec: { size, shards } }) => ({
      spec: {
        min: size,
        max: size,
        shards: shards.map((name) => ({ name, bytes: 0 })),
      },
    }),
    down: ({ spec: { min, shards } }) => ({
      spec: { size: min, shards: shards.map(({ name }) => name) },
    }),
  }],
});

function body(version: string, spec: (at: number) => object): string {
  const group = "bench.coracle.dev";
  const objects = Array.from({ length: OBJECTS }, (_, at): UntypedObject => ({
    apiVersion: `${group}/${version}`,
    kind: "Store",
    metadata: {
      name: `store-${at}`,
      namespace: "default",
      uid: `${at}`,
      labels: { app: "store", tier: "one" },
    },
    spec: spec(at),
    status: { ready: true, replicas: at },
  }));
  const desiredAPIVersion = `${group}/${version === "v1" ? "v1beta1" : "v1"}`;
  return JSON.stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "ConversionReview",
    request: { uid: "1", desiredAPIVersion, objects },
  });
}

/** Converts lists from body to body, as a webhook does without its sockets. */
async function measure(
  text: string,
  atOnce: number = 1,
): Promise<readonly Measure[]> {
  const convert = conversionHandler([Store]);
  const review = async (): Promise<ConversionAnswer> => {
    const answer = await convert(JSON.parse(text));
    JSON.stringify(answer);
    return answer;
  };
  const { response } = await review();
  verify(
    response.convertedObjects?.length === OBJECTS,
    "all objects must be converted",
  );
  for (let count = 0; count < WARM_REVIEWS; count++) await review();
  const start = cpuTime();
  for (let count = 0; count < REVIEWS; count += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, review));
  }
  const seconds = (cpuTime() - start) / 1_000_000;
  return [
    { unit: "objects/s of a core", value: OBJECTS * REVIEWS / seconds },
    peakRss(),
  ];
}

function withRanges(): string {
  return body("v1", (min) => ({
    min,
    max: min + 1,
    shards: ["a", "b", "c"].map((name) => ({ name, bytes: 9 })),
  }));
}

export const bench: Bench = {
  name: "conversion",
  what: "conversion of lists of 500 objects between two versions",
  subjects: [
    {
      name: "up, nothing lost",
      run: () =>
        measure(body("v1beta1", (size) => ({ size, shards: ["a", "b", "c"] }))),
    },
    {
      name: "down, 4 fields kept",
      run: () => measure(withRanges()),
    },
    {
      name: `down, 4 fields kept, ${AT_ONCE} lists at once`,
      run: () => measure(withRanges(), AT_ONCE),
    },
  ],
};

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ConversionAnswer,
  conversionHandler,
} from "../../../core/conversion/conversion_review.ts";
import { failureOf } from "../../../core/conversion/unconverted.ts";
import { Fleet, fleet } from "./versioned_kind.ts";

const convert = conversionHandler([Fleet]);

function review(request: object): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "ConversionReview",
    request: { uid: "u1", desiredAPIVersion: "sea.example.org/v1", ...request },
  };
}

function objectsOf({ response }: ConversionAnswer) {
  assert.deepEqual(response.result, { status: "Success" });
  return response.convertedObjects ?? [];
}

test("A list of hundreds is one review, and one bad object fails alone", async () => {
  const objects = Array.from(
    { length: 500 },
    (_, at) =>
      fleet("v1alpha1", { size: at === 77 ? "x" : String(at) }, {
        name: `fleet-${at}`,
      }),
  );
  const reviews = Array.from(
    { length: 10 },
    () => convert(review({ objects })),
  );
  for (const answer of await Promise.all(reviews)) {
    const converted = objectsOf(answer);
    assert.equal(answer.response.uid, "u1");
    assert.equal(converted.length, 500);
    assert.deepEqual(
      converted.filter((object) => failureOf(object)).map(({ metadata }) =>
        metadata.name
      ),
      ["fleet-77"],
    );
  }
});

test("A review that is aborted stops between two objects", async () => {
  const objects = Array.from(
    { length: 500 },
    () => fleet("v1", { min: 1, max: 1, boats: [] }),
  );
  const abort = new AbortController();
  const answer = convert(
    review({ objects, desiredAPIVersion: "sea.example.org/v1beta1" }),
    abort.signal,
  );
  abort.abort(new Error("too late"));
  assert.deepEqual((await answer).response, {
    uid: "u1",
    result: { status: "Failure", message: "too late" },
  });
});

for (
  const [what, body, message] of [
    ["no review", "text", /must be a ConversionReview .*: received text/],
    ["another kind", { kind: "AdmissionReview" }, /must be a ConversionReview/],
    [
      "an older version",
      { ...review({}), apiVersion: "apiextensions.k8s.io/v1beta1" },
      /received apiextensions.k8s.io\/v1beta1 ConversionReview/,
    ],
    ["no uid", review({ uid: undefined, objects: [] }), /no uid/],
    ["no objects", review({}), /no objects/],
    ["an object that is none", review({ objects: [5] }), /no metadata/],
    [
      "annotations that are none",
      review({ objects: [fleet("v1", {}, { annotations: 5 })] }),
      /no metadata/,
    ],
    ["no version", review({ desiredAPIVersion: "v1" }), /has no version/],
    [
      "an unknown kind",
      review({ objects: [{ ...fleet("v1", {}), kind: "Raft" }] }),
      /no conversion for its kind: received sea.example.org\/v1 Raft/,
    ],
    [
      "an unknown version",
      review({ objects: [fleet("v7", {})] }),
      /no such version: received v7/,
    ],
  ] as const
) {
  test(`A conversion review with ${what} is answered by a failure`, async () => {
    const { response } = await convert(body);
    assert.equal(response.result.status, "Failure");
    assert.match(response.result.message ?? "", message);
    assert.equal(response.convertedObjects, undefined);
  });
}

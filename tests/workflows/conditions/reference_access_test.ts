import assert from "node:assert/strict";
import { test } from "node:test";
import { AccessDeniedError, checkAccess } from "@coracle/operator/workflows";
import type { CrossReference } from "../../../workflows/conditions/reference_access.ts";

const FROM = { namespace: "shop", labels: { team: "blue", tier: "front" } };

/** Whether an object in another namespace lets the shop in. */
function allows(accessFrom: CrossReference["to"]["accessFrom"]): boolean {
  try {
    checkAccess({ from: FROM, to: { namespace: "data", accessFrom } });
    return true;
  } catch (error) {
    assert(error instanceof AccessDeniedError);
    return false;
  }
}

test("A reference within one namespace needs no access list [F46]", () => {
  checkAccess({ from: FROM, to: { namespace: "shop" } });
  checkAccess({ from: FROM, to: {} });
  checkAccess({ from: FROM, to: { namespace: "" } });
});

test("A reference from another namespace is refused without a list, or by an empty one [F46]", () => {
  assert(!allows(undefined));
  assert(!allows({ namespaceSelectors: [] }));
});

test("A selector without labels lets every namespace in [F46]", () => {
  assert(allows({ namespaceSelectors: [{}] }));
  assert(allows({ namespaceSelectors: [{ matchLabels: {} }] }));
});

test("Any selector of which all labels match lets a namespace in [F46]", () => {
  const selector = (matchLabels: Record<string, string>) => ({ matchLabels });
  assert(allows({ namespaceSelectors: [selector({ team: "blue" })] }));
  assert(!allows({ namespaceSelectors: [selector({ team: "red" })] }));
  assert(
    !allows({ namespaceSelectors: [selector({ team: "blue", tier: "back" })] }),
  );
  assert(
    allows({
      namespaceSelectors: [
        selector({ team: "red" }),
        selector({ tier: "front" }),
      ],
    }),
  );
});

test("A refusal names both namespaces [F46]", () => {
  assert.throws(() => checkAccess({ from: FROM, to: { namespace: "data" } }), {
    name: "AccessDeniedError",
    message: /object in namespace data: .* received shop$/,
  });
});

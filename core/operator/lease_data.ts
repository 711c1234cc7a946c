/**
 * Data of Leases, as they are read back: another program may have written them. The
 * file is loaded with the first Lease, as it needs zod.
 *
 * @module
 */
import * as z from "zod/mini";
import { damagedFields } from "../api/input.ts";

/** Specification of a Lease: its holder and its times. */
export interface LeaseSpec {
  holderIdentity?: string | undefined;
  leaseDurationSeconds?: number | undefined;
  acquireTime?: string | undefined;
  renewTime?: string | undefined;
  leaseTransitions?: number | undefined;
}

const TEXT = z.optional(z.string());

const SPEC = z.looseObject({
  holderIdentity: TEXT,
  leaseDurationSeconds: z.optional(z.int().check(z.positive())),
  acquireTime: TEXT,
  renewTime: TEXT,
  leaseTransitions: z.optional(z.int().check(z.nonnegative())),
});

const MEMBERS = z.pipe(
  z.array(z.unknown()),
  z.transform((items) => items.filter((name) => typeof name === "string")),
);

/** Specification of a Lease without its damaged fields. */
export function readLeaseSpec(stored: LeaseSpec | undefined): LeaseSpec {
  const spec: LeaseSpec = { ...stored };
  for (const name of damagedFields(spec, SPEC)) {
    Reflect.deleteProperty(spec, name);
  }
  return spec;
}

/** Members in the text of an annotation; none if the text is invalid. */
export function readMembers(text: string | undefined): readonly string[] {
  try {
    return MEMBERS.parse(JSON.parse(text ?? "[]"));
  } catch {
    return [];
  }
}

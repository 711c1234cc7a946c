/** A function of CEL failed; its message is cel-go's. */
export class CelFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = "CelFailure";
  }
}

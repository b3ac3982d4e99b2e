/** Of an object of a request: members that nobody reads are refused, so that misspelt ones are noticed. */
export const strict = { additionalProperties: false } as const;

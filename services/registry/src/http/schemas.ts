import { Type } from 'typebox';

/** Contract 1, "Errors". */
export const ErrorResponse = Type.Object(
  {
    error: Type.String({ description: 'Error type' }),
    message: Type.String({ description: 'What is wrong with this request' }),
  },
  { $id: 'Error' },
);

/**
 * A `service_name` in a body or path. What it may hold is checked by the domain, which says which
 * rule is broken.
 */
export const ServiceName = Type.String({
  description: "Unique name: 1 to 253 characters, no ':', no white space, no control characters",
});

/** ISO 8601 with offset. */
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601 with offset' });

/**
 * `2026-11-20T17:00:00.000+00:00`: ISO 8601 with a numeric offset, as the contract's records have
 * it.
 */
export function timestamp(date: Date): string {
  return date.toISOString().replace('Z', '+00:00');
}

/** Of a list, as it stands in the query. */
export const Limit = Type.String({
  description: 'Most entries to return: an integer from 1 to 1000, 100 by default',
});

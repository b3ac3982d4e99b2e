import type { FastifyRequest } from 'fastify';
import type { CallProof } from '../domain/call-proof.ts';

interface ProvingBody {
  readonly webhook_secret?: string;
  readonly secret?: string;
}

/**
 * What a request brings to show that it may be made.
 *
 * @param action what it is to do; see {@link CallProof}.
 * @returns one whose body says that too, as those do that have to name the service and what is to be done with it.
 */
export function proofOf(
  { headers, rawBody }: Pick<FastifyRequest, 'headers' | 'rawBody'>,
  body: ProvingBody | null,
  action: string,
): CallProof {
  const header = (name: string) => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    action,
    body: rawBody,
    isBound: true,
    signature: header('x-webhook-signature'),
    timestamp: header('x-webhook-timestamp'),
    standard: {
      id: header('webhook-id'),
      timestamp: header('webhook-timestamp'),
      signature: header('webhook-signature'),
    },
    secrets: [body?.webhook_secret, body?.secret],
  };
}

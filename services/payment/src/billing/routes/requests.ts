import * as resources from '@rollcall/platform/http/resources.ts';
import type { FastifyRequest } from 'fastify';
import type { Owner } from '../../domain/owner.ts';

/** Whose things the caller sees. */
export function ownerOf(request: Pick<FastifyRequest, 'caller'>): Owner {
  return resources.ownerOf(request, 'billing');
}

import { commonError, invalidRequest } from '@rollcall/platform/common-errors.ts';
import { ONE_LINE } from '@rollcall/platform/http/patterns.ts';
import { noContent, strict } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { type DeviceStore, parseDeviceToken, possibleTargets } from '../domain/devices.ts';
import { pushPlatforms } from '../domain/recipients.ts';
import { owner } from '../schemas/owner.ts';
import { ownerOf } from './owner.ts';

const tags = ['recipients'];

const DeviceParams = Type.Object({
  token: Type.String({
    minLength: 1,
    maxLength: 6000,
    description: 'Token of FCM or APNs; of a browser its PushSubscription, as JSON in base64url',
  }),
});
const OwnerQuery = Type.Object(owner, strict);
const Platform = Type.Enum([...pushPlatforms]);
const Line = (description: string) => Type.String({ minLength: 1, maxLength: 255, ...ONE_LINE, description });
const reference = {
  user: Type.Optional(Line('By which you know who uses the device')),
  app: Type.Optional(Line('Which of your apps')),
};
const DeviceBody = Type.Object({ platform: Platform, ...reference }, strict);
const DeviceRecord = Type.Object({
  platform: Platform,
  ...reference,
  registeredAt: Type.String({ format: 'date-time' }),
});

/** `/devices`. */
export function deviceRoutes(devices: DeviceStore): Routes {
  return (app) => {
    app.put(
      '/devices/:token',
      {
        schema: {
          tags,
          summary: 'Register a device, or say that it still is there',
          params: DeviceParams,
          querystring: OwnerQuery,
          body: DeviceBody,
          response: { 200: DeviceRecord, 201: DeviceRecord },
        },
      },
      async (request, reply) => {
        const { platform, user, app: name } = request.body;
        const parsed = parseDeviceToken(request.params.token, platform);
        if ('fault' in parsed) throw invalidRequest([{ path: 'path/token', message: parsed.fault }]);
        const { device, isNew } = await devices.register(ownerOf(request, 'messages'), {
          target: parsed.value,
          user,
          app: name,
        });
        return reply.status(isNew ? 201 : 200).send({
          platform,
          ...(user !== undefined && { user }),
          ...(name !== undefined && { app: name }),
          registeredAt: device.registeredAt.toISOString(),
        });
      },
    );
    app.delete(
      '/devices/:token',
      {
        schema: {
          tags,
          summary: 'Forget a device',
          params: DeviceParams,
          querystring: OwnerQuery,
          response: noContent,
        },
      },
      async (request, reply) => {
        const targets = possibleTargets(request.params.token);
        if (!(await devices.remove(ownerOf(request, 'messages'), targets))) throw commonError('NOT_FOUND');
        return reply.status(204).send(null);
      },
    );
  };
}

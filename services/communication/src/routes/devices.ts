import { commonError, invalidRequest } from '@rollcall/platform/common-errors.ts';
import { listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { ONE_LINE } from '@rollcall/platform/http/patterns.ts';
import { noContent, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { type Device, type DeviceStore, deviceTokenOf, parseDeviceToken, possibleTargets } from '../domain/devices.ts';
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
const deviceMembers = { platform: Platform, ...reference, registeredAt: Type.String({ format: 'date-time' }) };
const DeviceRecord = Type.Object(deviceMembers);

const DevicesQuery = Type.Object(
  { ...listQuery, ...owner, user: Type.Optional(Line('Who uses them, as you registered them')) },
  strict,
);
const DevicesResponse = Type.Object({
  devices: Type.Array(Type.Object({ token: Type.String({ description: 'As paths have it' }), ...deviceMembers })),
  ...pageAnswer,
});

function deviceRecord({ target, user, app, registeredAt }: Device) {
  return {
    platform: target.platform,
    ...(user !== undefined && { user }),
    ...(app !== undefined && { app }),
    registeredAt: registeredAt.toISOString(),
  };
}

/** `/devices`. */
export function deviceRoutes(devices: DeviceStore): Routes {
  return (app) => {
    app.get(
      '/devices',
      {
        schema: {
          tags,
          summary: 'Devices that are registered, newest first',
          querystring: DevicesQuery,
          response: { 200: DevicesResponse },
        },
      },
      async (request) => {
        const { user, subject: _subject, ...query } = request.query;
        const page = pageOf(query);
        const { rows, total, nextCursor } = await devices.list(ownerOf(request, 'messages'), user, page);
        const listed = rows.map((device) => ({ token: deviceTokenOf(device.target), ...deviceRecord(device) }));
        return { devices: listed, total, limit: page.limit, offset: page.offset, nextCursor };
      },
    );
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
        return reply.status(isNew ? 201 : 200).send(deviceRecord(device));
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

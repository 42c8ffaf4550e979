"""A bare pass-through with aiohttp on both sides, no JSON: python -m … UPSTREAM_PORT"""

import asyncio
import sys

from aiohttp import ClientSession, TCPConnector, web

from bench.gateways.serving import serve


async def main(upstream_port: int) -> None:
    """Forward each request to the upstream, and each answer to the client."""
    upstream = f"http://127.0.0.1:{upstream_port}"
    async with ClientSession(connector=TCPConnector(limit=0)) as client:

        async def passed_on(request: web.Request) -> web.StreamResponse:
            headers = {"content-type": "application/json"}
            body = await request.read()
            async with client.post(
                f"{upstream}{request.path}", data=body, headers=headers
            ) as answer:
                content_type = answer.headers["content-type"]
                if content_type == "application/json":
                    whole = await answer.read()
                    return web.Response(body=whole, status=answer.status, content_type=content_type)
                response = web.StreamResponse(
                    status=answer.status, headers={"content-type": content_type}
                )
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                return response

        await serve(passed_on)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))

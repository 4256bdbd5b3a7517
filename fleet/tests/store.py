"""Serves an object store with one bucket, `builds`, on the loopback device until standard input is closed. Prints the port."""

import os
import sys

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
_, port = server.get_host_and_port()
os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")
store = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
store.create_bucket(Bucket="builds")
print(port, flush=True)
sys.stdin.read()
server.stop()

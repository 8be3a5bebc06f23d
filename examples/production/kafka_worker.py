"""Forecasts and outcomes from a Kafka topic, answers to another; `pip install confluent-kafka 'orcast[postgresql]'`.

Messages and answers are the lines of `orcast stream`.  The offset is committed after the answer was delivered, so a
message may come twice: the store recognises it by series and id, and answers it again.
"""

import os

from orcast.stream.session import Session, to_line


def answer_all(messages, session, send, commit):
    """Answer each message; a bad one gets a sentence, and the next one follows."""
    for message in messages:
        try:
            answer = session.answer(message.value())
        except (TypeError, ValueError) as reason:
            answer = to_line({"error": str(reason), "offset": message.offset()}).encode()
        send(message.key(), answer)
        commit(message)


def received(consumer):
    """Messages as they come; errors of the broker end the worker, and its supervisor starts it again."""
    while True:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            raise RuntimeError(message.error())
        yield message


def main():
    """Run until the process is stopped."""
    from confluent_kafka import Consumer, Producer

    servers = os.environ["KAFKA"]
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "orcast", "enable.auto.commit": False})
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    consumer.subscribe([os.environ.get("FORECASTS", "forecasts")])

    def send(key, answer):
        producer.produce(os.environ.get("CALIBRATED", "calibrated"), answer, key=key)
        if producer.flush(30):
            raise RuntimeError("expected the answer to be delivered within 30 s, got none")

    session = Session(os.environ["STORE"])
    answer_all(received(consumer), session, send, lambda message: consumer.commit(message, asynchronous=False))


if __name__ == "__main__":
    main()

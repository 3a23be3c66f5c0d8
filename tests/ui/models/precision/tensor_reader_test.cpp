// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The reader of matrices: its own thread, the newest question, failures.
#include "ui/models/precision/tensor_reader.h"

#include <QSemaphore>
#include <QTest>
#include <QThread>
#include <stdexcept>

#include "tests/ui/models/common/patience.h"

using namespace vitrine;

namespace {

using TensorPtr = std::shared_ptr<const ui::PrecisionTensor>;

TensorPtr named(const std::string& name) {
    auto tensor = std::make_shared<ui::PrecisionTensor>();
    tensor->detail.name = name;
    return tensor;
}

} // namespace

class TensorReaderTest final : public QObject {
    Q_OBJECT

private slots:
    void onlyTheNewestQuestionIsAnswered() {
        QSemaphore begun, go;
        ui::TensorSource source;
        bool onOtherThread = false;
        source.tensor = [&](const ui::PrecisionData&, std::size_t weight, std::size_t, const base::StopToken&) {
            onOtherThread = QThread::currentThread() != QCoreApplication::instance()->thread();
            if (weight == 1) {
                begun.release();
                go.acquire();
            }
            return named(std::to_string(weight));
        };
        ui::TensorReader reader(source);
        std::vector<std::string> answers;
        connect(&reader, &ui::TensorReader::tensorRead, this,
                [&](const TensorPtr& tensor) { answers.push_back(tensor->detail.name); });
        const auto data = std::make_shared<ui::PrecisionData>();
        reader.askTensor(data, 1, 1);
        begun.acquire();
        reader.askTensor(data, 2, 1);
        QVERIFY(reader.busy());
        go.release();
        QTRY_VERIFY(!reader.busy());
        QCOMPARE(answers, std::vector<std::string>{"2"});
        QVERIFY(onOtherThread);
    }

    void cancelledQuestionsHaveNoAnswer() {
        QSemaphore begun, go;
        ui::TensorSource source;
        source.tensor = [&](const ui::PrecisionData&, std::size_t, std::size_t, const base::StopToken&) {
            begun.release();
            go.acquire();
            return named("late");
        };
        source.group = [](const ui::PrecisionData&, std::size_t, std::size_t, std::int64_t group,
                          const base::StopToken&) {
            auto answer = std::make_shared<ui::PrecisionGroup>();
            answer->detail.error.group = group;
            return std::shared_ptr<const ui::PrecisionGroup>(answer);
        };
        ui::TensorReader reader(source);
        int tensors = 0;
        std::int64_t group = -1;
        connect(&reader, &ui::TensorReader::tensorRead, this, [&] { ++tensors; });
        connect(&reader, &ui::TensorReader::groupRead, this,
                [&](const std::shared_ptr<const ui::PrecisionGroup>& answer) { group = answer->detail.error.group; });
        const auto data = std::make_shared<ui::PrecisionData>();
        reader.askTensor(data, 0, 1);
        begun.acquire();
        reader.cancel();
        go.release();
        reader.askGroup(data, 0, 1, 7);
        QTRY_COMPARE(group, std::int64_t(7));
        QCOMPARE(tensors, 0);
    }

    void furtherFormatsFollowThoughAGroupIsAskedFor() {
        QSemaphore begun, go;
        int asked = 0;
        ui::TensorSource source;
        source.tensor = [](const ui::PrecisionData&, std::size_t, std::size_t, const base::StopToken&) {
            return named("own");
        };
        source.withOtherFormats = [&](const ui::PrecisionData&, std::size_t, const ui::PrecisionTensor& tensor,
                                      const base::StopToken&) {
            if (++asked == 1) {
                begun.release();
                go.acquire();
            }
            return named(tensor.detail.name + " and others");
        };
        source.group = [](const ui::PrecisionData&, std::size_t, std::size_t, std::int64_t, const base::StopToken&) {
            return std::make_shared<const ui::PrecisionGroup>();
        };
        ui::TensorReader reader(source);
        std::vector<std::string> answers;
        connect(&reader, &ui::TensorReader::tensorRead, this,
                [&](const TensorPtr& tensor) { answers.push_back(tensor->detail.name); });
        connect(&reader, &ui::TensorReader::formatsRead, this,
                [&](const TensorPtr& tensor) { answers.push_back(tensor->detail.name); });
        connect(&reader, &ui::TensorReader::groupRead, this, [&] { answers.emplace_back("group"); });
        const auto data = std::make_shared<ui::PrecisionData>();
        reader.askTensor(data, 0, 1);
        begun.acquire();
        QTRY_COMPARE(answers.size(), std::size_t(1)); // the tensor itself does not wait for its formats
        QVERIFY(reader.busy());
        reader.askGroup(data, 0, 1, 3);
        go.release();
        QTRY_VERIFY(!reader.busy());
        QCOMPARE(answers, (std::vector<std::string>{"own", "group", "own and others"}));
    }

    void whatIsThrownIsSaid() {
        ui::TensorSource source;
        source.tensor = [](const ui::PrecisionData&, std::size_t, std::size_t, const base::StopToken&) -> TensorPtr {
            throw std::runtime_error("no memory for the matrix");
        };
        ui::TensorReader reader(source);
        QString error;
        connect(&reader, &ui::TensorReader::tensorRead, this, [&](const TensorPtr& tensor) { error = tensor->error; });
        reader.askTensor(std::make_shared<ui::PrecisionData>(), 0, 1);
        QTRY_COMPARE(error, QStringLiteral("no memory for the matrix"));
    }
};

QTEST_MAIN(TensorReaderTest)
#include "tensor_reader_test.moc"

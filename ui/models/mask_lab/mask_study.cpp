// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_study.h"

#include <QFileInfo>
#include <QObject>
#include <QRegularExpression>
#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "engine/workload/attention/attention_tensors.h"
#include "kernels/program/program.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

/// Whether the text gives this name a value at its own level.
bool binds(const std::string& text, const char* name) {
    const QRegularExpression pattern(QStringLiteral("^(def\\s+%1\\s*\\(|%1\\s*=[^=])").arg(QLatin1String(name)),
                                     QRegularExpression::MultilineOption);
    return pattern.match(QString::fromStdString(text)).hasMatch();
}

/// What is taken where the user chose nothing: the text's `mask` or `score`, else the last function of that kind.
std::string ownChoice(const std::string& text, const char* name, const QStringList& offers) {
    if (binds(text, name)) {
        return name;
    }
    return offers.isEmpty() ? std::string() : offers.back().toStdString();
}

std::string chosen(const std::string& asked, const std::string& own) {
    return asked == kNoMod ? std::string() : asked.empty() ? own : asked;
}

MaskProblem problemOf(const engine::PyError& error, const std::string& text) {
    MaskProblem problem;
    problem.what = textOf(error.description());
    problem.what.remove(QStringLiteral(" (--tensors FILE)")); // here it is a button
    if (error.place().file == engine::kProgramTextName) {
        problem.line = error.place().line;
        problem.column = error.place().column;
        const std::size_t end = std::min(error.place().end, text.size());
        problem.begin = utf16Offset(text, std::min(error.place().begin, end));
        problem.end = utf16Offset(text, end);
        if (error.description().find("is not defined") != std::string::npos) {
            problem.undefined =
                textOf(std::string_view(text).substr(std::min(error.place().begin, end), end - error.place().begin));
        }
    } else {
        problem.what = QStringLiteral("%1: %2").arg(textOf(error.place().file), problem.what);
    }
    return problem;
}

MaskNumber numberOf(const engine::SlidableNumber& number, const std::map<std::string, double>& moved) {
    MaskNumber out;
    out.name = textOf(number.name);
    out.textValue = number.value;
    const auto found = moved.find(number.name);
    out.value = found == moved.end() ? number.value : found->second;
    out.whole = number.whole;
    const double far = 2 * std::max(std::fabs(number.value), std::fabs(out.value));
    out.high = number.whole ? std::max(16.0, far) : std::max(1.0, far);
    out.low = number.value < 0 || out.value < 0 ? -out.high : 0;
    return out;
}

QString typeText(const engine::CapturedTensor& tensor) {
    QStringList extents;
    for (const std::int64_t extent : tensor.shape.dims()) {
        extents << QString::number(extent);
    }
    return QStringLiteral("%1 (%2)").arg(textOf(kernels::dtypeName(tensor.dtype)), extents.join(QStringLiteral(", ")));
}

kernels::TensorView viewOf(engine::HostTensor& tensor) {
    kernels::TensorView view;
    view.data = tensor.bytes.data();
    view.dtype = tensor.dtype;
    view.shape = tensor.shape;
    return view;
}

/// The source once it is parsed, on the way to a study.
class Reader {
public:
    Reader(const MaskSource& source, const MaskSizes& sizes, MaskStudy& study) : source_(source), study_(study) {
        choice_ = programChoice(source, sizes);
    }

    void read() {
        const engine::PyModule module = engine::parseModule(choice_);
        for (const engine::ProgramOffer& offer : module.offers()) {
            if (offer.kind != engine::ProgramOffer::Kind::Factory) {
                (offer.kind == engine::ProgramOffer::Kind::Mask ? study_.maskOffers : study_.scoreOffers)
                    << textOf(offer.name);
            }
        }
        study_.maskName = chosen(source_.mask, ownChoice(source_.text, "mask", study_.maskOffers));
        study_.scoreName = chosen(source_.score, ownChoice(source_.text, "score", study_.scoreOffers));
        if (!source_.tensorsFile.empty()) {
            file_ = engine::readCapturedTensors(source_.tensorsFile);
        }
        const engine::ProgramOptions options = engine::programOptions(choice_, file_);
        if (!study_.maskName.empty()) {
            study_.mask = program(module, study_.maskName, options, true);
        }
        if (!study_.scoreName.empty()) {
            study_.score = program(module, study_.scoreName, options, false);
        }
    }

private:
    /// All numbers that a slider may move are read when the program runs: moving them makes no other program, and a
    /// sub-expression is shown with their names.
    MaskProgramPtr program(const engine::PyModule& module, const std::string& expression,
                           engine::ProgramOptions options, bool isMask) {
        const auto make = [&] { return isMask ? module.mask(expression, options) : module.score(expression, options); };
        engine::ChosenProgram made = make();
        if (!made.numbers.empty()) {
            for (const engine::SlidableNumber& number : made.numbers) {
                options.sliders.emplace(number.name, number.value);
            }
            made = make();
        }
        for (const engine::SlidableNumber& number : made.numbers) {
            const QString name = textOf(number.name);
            if (std::none_of(study_.numbers.begin(), study_.numbers.end(),
                             [&name](const MaskNumber& one) { return one.name == name; })) {
                study_.numbers.push_back(numberOf(number, source_.parameters));
            }
        }
        for (const std::string& note : made.notes) {
            study_.notes << textOf(note);
        }
        study_.notes.removeDuplicates();
        for (std::size_t i = 0; i < made.program.captures.size(); ++i) {
            if (made.program.captures[i].rank > 0) {
                addCapture(made.program.captures[i].name, made.captures[i]);
            }
        }
        return maskProgram(std::move(made));
    }

    void addCapture(const std::string& name, const engine::CapturedTensor& tensor) {
        MaskCapture capture;
        capture.name = textOf(name);
        if (std::any_of(study_.captures.begin(), study_.captures.end(),
                        [&capture](const MaskCapture& one) { return one.name == capture.name; })) {
            return;
        }
        capture.type = typeText(tensor);
        capture.from = file_.contains(name) ? MaskCapture::From::File : MaskCapture::From::Text;
        for (const std::string& line : source_.captures) {
            if (captureName(line) == name) {
                capture.from = MaskCapture::From::Editor;
                capture.lengths = captureLengths(line);
                capture.values = capture.lengths.empty() ? textOf(captureValue(line)) : QString();
                capture.tooShort =
                    !capture.lengths.empty() && tensor.shape[0] < std::max(choice_.queries, choice_.keys);
            }
        }
        study_.captures.push_back(std::move(capture));
    }

    const MaskSource& source_;
    MaskStudy& study_;
    engine::ProgramChoice choice_;
    engine::CapturedTensors file_;
};

} // namespace

qsizetype utf16Offset(std::string_view text, std::size_t byte) {
    return QString::fromStdString(std::string(text.substr(0, byte))).size();
}

QString MaskStudy::title() const {
    if (!source.name.empty()) {
        return textOf(source.name);
    }
    QStringList parts;
    for (const std::string& part : {scoreName, maskName}) {
        if (!part.empty()) {
            parts << textOf(part);
        }
    }
    return parts.isEmpty() ? QObject::tr("no mask") : parts.join(QStringLiteral(", "));
}

MaskStudyPtr studyMask(const MaskSource& source, const MaskSizes& sizes) {
    auto study = std::make_shared<MaskStudy>();
    study->source = source;
    study->sizes = sizes;
    const auto begin = std::chrono::steady_clock::now();
    try {
        Reader(source, sizes, *study).read();
    } catch (const engine::PyError& error) {
        study->problem = problemOf(error, source.text);
    } catch (const std::exception& error) {
        study->problem = MaskProblem{QString::fromUtf8(error.what()), 0, 0, 0, 0, {}};
    }
    if (study->problem) {
        study->mask.reset();
        study->score.reset();
    }
    study->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return study;
}

std::optional<MaskScores> fileScores(const MaskStudy& study) {
    if (study.source.tensorsFile.empty()) {
        return std::nullopt;
    }
    auto inputs = std::make_shared<engine::AttentionInputs>();
    try {
        *inputs = engine::readAttentionInputs(study.source.tensorsFile, kernels::DType::None, false, false);
        engine::checkAttentionInputs(*inputs, study.source.tensorsFile);
    } catch (const base::Error&) {
        return std::nullopt;
    }
    if (inputs->q.shape[2] != study.sizes.queries || inputs->k.shape[2] != study.sizes.keys) {
        return std::nullopt;
    }
    MaskScores scores;
    scores.program = study.score;
    scores.base = MaskScores::Base::Product;
    scores.q = viewOf(inputs->q);
    scores.k = viewOf(inputs->k);
    scores.scale = 1 / std::sqrt(static_cast<double>(inputs->q.shape[3]));
    scores.owner = inputs;
    return scores;
}

} // namespace vitrine::ui

// The launch contract as JSON.

#include "pipeline/Metadata.h"

#include "llvm/Support/JSON.h"

using namespace llvm;

namespace triton_metal {

static void writeArgument(json::OStream &json, const ArgumentMetadata &argument, unsigned index) {
  json.object([&] {
    json.attribute("name", argument.name);
    json.attribute("index", int64_t(index));
    json.attribute("kind", argument.isBuffer ? "buffer" : "scalar");
    json.attribute("type", argument.type);
    json.attribute("slot", int64_t(argument.slot));
    json.attribute("words", int64_t(argument.words));
    json.attribute("reads", argument.memory.reads);
    json.attribute("writes", argument.memory.writes);
    // What a launch covers depends on its grid, which is not known here.
    json.attribute("wholly_written", false);
    json.attribute("atomic", argument.memory.isAtomic);
    if (!argument.messageRole.empty())
      json.attribute("messages", argument.messageRole);
  });
}

namespace {
/// Source places name their files by number; the list of files comes at the end.
class Places {
public:
  /// Writes the innermost place and the calls that lead to it.
  void write(json::OStream &json, StringRef name, ArrayRef<SourcePlace> source) {
    json.attributeBegin(name);
    write(json, source);
    json.attributeEnd();
  }
  void write(json::OStream &json, ArrayRef<SourcePlace> source) {
    json.array([&] {
      for (const SourcePlace &place : source) {
        auto found = llvm::find(files, place.file);
        json.value(int64_t(found - files.begin()));
        if (found == files.end())
          files.push_back(place.file);
        json.value(int64_t(place.line));
        json.value(int64_t(place.column));
      }
    });
  }
  ArrayRef<StringRef> getFiles() const { return files; }

private:
  std::vector<StringRef> files;
};
} // namespace

static void writeSite(json::OStream &json, const MessageSite &site, Places &places) {
  json.object([&] {
    json.attribute("kind", site.isPrint ? "print" : "assert");
    json.attribute("text", json::fixUTF8(site.text));
    json.attribute("hex", site.hex);
    json.attributeArray("operands", [&] {
      for (const MessageSite::Operand &operand : site.operands)
        json.object([&] {
          json.attribute("type", operand.type);
          json.attributeArray("shape", [&] {
            for (int64_t size : operand.shape)
              json.value(size);
          });
          json.attribute("signed", operand.isSigned);
        });
    });
    places.write(json, "source", site.source);
  });
}

static void writeText(json::OStream &json, const TextLayout &layout, Places &places) {
  json.attribute("begin", int64_t(layout.begin));
  json.attribute("body_begin", int64_t(layout.bodyBegin));
  json.attribute("body_end", int64_t(layout.bodyEnd));
  json.attributeArray("parameters", [&] {
    for (const TextParameter &parameter : layout.parameters)
      json.object([&] {
        json.attribute("name", parameter.name);
        json.attribute("type", parameter.type);
        if (parameter.buffer)
          json.attribute("buffer", int64_t(*parameter.buffer));
        else
          json.attribute("attribute", parameter.attribute);
      });
  });
  places.write(json, "source", layout.source);
  json.attributeArray("places", [&] {
    for (const TextPlace &place : layout.places)
      json.array([&] {
        json.value(int64_t(place.line));
        json.value(int64_t(place.column));
        json.value(place.kind);
        places.write(json, place.source);
      });
  });
  json.attributeArray("files", [&] {
    for (StringRef file : places.getFiles())
      json.value(file);
  });
}

std::string linesToJSON(const TextLayout &layout) {
  std::string result;
  raw_string_ostream os(result);
  json::OStream json(os);
  json.object([&] {
    Places places;
    json.attributeArray("lines", [&] {
      for (const TextLine &line : layout.lines)
        json.array([&] {
          json.value(int64_t(line.line));
          for (const std::vector<SourcePlace> &source : line.sources)
            places.write(json, source);
        });
    });
    json.attributeArray("files", [&] {
      for (StringRef file : places.getFiles())
        json.value(file);
    });
    json.attributeArray("buffers", [&] {
      for (const TextBuffer &buffer : layout.buffers)
        json.object([&] {
          json.attribute("name", buffer.name);
          json.attribute("type", buffer.type);
          json.attribute("offset", int64_t(buffer.offset));
          json.attribute("bytes", int64_t(buffer.bytes));
          json.attributeArray("lines", [&] {
            for (unsigned line : buffer.lines)
              json.value(int64_t(line));
          });
        });
    });
  });
  return result;
}

std::string KernelMetadata::toJSON() const {
  std::string result;
  raw_string_ostream os(result);
  json::OStream json(os, 2);
  json.object([&] {
    json.attribute("name", name);
    json.attribute("threads", int64_t(threads));
    json.attribute("threadgroup_bytes", threadgroupBytes);
    json.attribute("num_warps", int64_t(threads) / 32);
    json.attribute("num_stages", numStages);
    json.attribute("pipeline_stages", pipelineStages);
    json.attribute("slices", slices);
    if (!choice.empty())
      json.attribute("choice", choice);
    if (!gridLimits.empty())
      json.attributeArray("grid_limits", [&] {
        for (const std::array<int64_t, 4> &sum : gridLimits)
          json.array([&] { llvm::for_each(sum, [&](int64_t number) { json.value(number); }); });
      });
    if (serial)
      json.attributeArray("serial", [&] {
        for (const SourcePlace &place : *serial)
          json.value(place.file + ":" + std::to_string(place.line) + ":" +
                     std::to_string(place.column));
      });
    json.attributeArray("args", [&] {
      for (auto [index, argument] : llvm::enumerate(arguments))
        writeArgument(json, argument, index);
    });
    json.attribute("scalar_buffer", scalarBuffer ? int64_t(*scalarBuffer) : int64_t(-1));
    Places places;
    if (!messages.empty())
      json.attributeArray("messages", [&] {
        for (const MessageSite &site : messages)
          writeSite(json, site, places);
      });
    json.attributeObject("text", [&] { writeText(json, text, places); });
  });
  return result;
}

} // namespace triton_metal
